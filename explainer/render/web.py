"""The page of a cause as one HTML file: no scripts, nothing fetched, the reader's light or dark.

Rules may come from anywhere: HTML in their prose is text, and the page's policy lets nothing run or load.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from explainer.render.page import Block, Prose
from explainer.render.visible import visible

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
body { font: 16px/1.55 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
pre { padding: .7rem .9rem; border-radius: 6px; overflow-x: auto; font-size: .85rem; line-height: 1.4; background: #8881; }
pre.text { white-space: pre-wrap; overflow-wrap: anywhere; }
code { font-family: ui-monospace, monospace; }
:not(pre) > code { background: #8882; padding: .1em .3em; border-radius: 3px; }
h2 { margin-top: 2.2rem; border-bottom: 1px solid #8884; padding-bottom: .2rem; }
summary { cursor: pointer; margin: .8rem 0 .4rem; }
"""


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """The page as a whole document.

    Args:
        title: what the browser's tab says.
        blocks: the page, as `render.page.cause_page` makes it.
    """
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    body = "\n".join(
        reader.render(visible(block.text))
        if isinstance(block, Prose)
        else _code(block.text, block.language, block.fold)
        for block in blocks
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(visible(title))}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">\n'
        f"<style>{_STYLE}{_colours()}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _colours() -> str:
    light = HtmlFormatter(style="default").get_style_defs("pre")
    dark = HtmlFormatter(style="github-dark").get_style_defs("pre")
    kept = "\n".join(line for line in str(dark).split("\n") if "background" not in line)
    return (
        "\n".join(line for line in str(light).split("\n") if "background" not in line)
        + f"\n@media (prefers-color-scheme: dark) {{\n{kept}\n}}\n"
    )


def _code(text: str, language: str, fold: str | None) -> str:
    shown = visible(text.strip("\n"))
    marked = escape(shown) if language == "text" else highlight(shown, get_lexer_by_name(language), _INLINE)
    block = f'<pre class="{language}"><code>{marked}</code></pre>'
    return block if fold is None else f"<details><summary>{escape(visible(fold))}</summary>\n{block}\n</details>"


_INLINE = HtmlFormatter(nowrap=True)
