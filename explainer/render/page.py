"""The page of a cause, for the documentation and for `gradfix rules show --web`: prose and code, one after the other."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from explainer.model.rule import Cause, Myth
from explainer.model.shape import Printed, Shape
from explainer.render.markdown import code_block, plain
from explainer.render.visible import visible

LONG = 14  # lines from which a recording is folded
APPLICABILITY = {
    "safe": "same mathematics",
    "unsafe": "changes training, memory or speed",
    "display": "advice, never applied unasked",
}
_REFERENCES = "\n## References\n"
_SPECIAL = re.compile(
    r"(?P<code>^(?: {4}|\t).*?$|```.*?```|(?P<ticks>``?)(?:(?!\n\n).)+?(?<!`)(?P=ticks)(?!`)|<https?://[^\s<>]+>)"
    r"|(?P<address>(?<![(\w])https?://[^\s<>)]*[^\s<>).,;:])"
    r"|<",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """Markdown; what stood in it as HTML is text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A program, a diff or what was printed; folded behind `fold` where that is given."""

    text: str
    language: str
    fold: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Where causes and myths have their pages; None for one that has none."""

    cause: Callable[[str], str | None]
    myth: Callable[[str], str | None]


Block = Prose | Code


def cause_page(
    cause: Cause, prose: str, shapes: Sequence[Shape], messages: Sequence[Sequence[str]], links: Links
) -> tuple[Block, ...]:
    """Everything that the folder of a cause says.

    Args:
        cause: the cause.
        prose: its README.md.
        shapes: its programs.
        messages: what it prints: for each wording its samples.
        links: where other pages lie.
    """
    body, _, references = prose.partition(_REFERENCES)
    blocks: list[Block] = [Prose(text=_head(cause)), *_messages(messages)]
    blocks.append(Prose(text=link_prose(body.partition("\n")[2].strip(), links)))
    blocks.extend(_fixes(cause))
    blocks.extend(Prose(text=text) for text in (_myths(cause.myths, links), _look_alikes(cause, links)) if text)
    blocks.extend(_programs(cause, shapes))
    if references:
        blocks.append(Prose(text=f"## References\n\n{link_prose(references.strip(), links)}"))
    return tuple(blocks)


def to_markdown(blocks: Sequence[Block]) -> str:
    """The page as Markdown; folds are `<details>`, which Python-Markdown reads with `md_in_html`."""
    parts = []
    for block in blocks:
        if isinstance(block, Prose):
            parts.append(block.text)
            continue
        text = "\n".join(code_block(block.text.strip("\n"), block.language))
        if block.fold is not None:
            head = f'<details markdown="1" data-search-exclude>\n<summary>{escape(block.fold)}</summary>'
            text = f"{head}\n\n{text}\n\n</details>"
        parts.append(text)
    return "\n\n".join(parts) + "\n"


def link_prose(text: str, links: Links) -> str:
    """`text` with the ids of causes and bare addresses as links, and HTML as text; code stays as it is."""

    def mended(found: re.Match[str]) -> str:
        if found["address"]:
            return f"<{found['address']}>"
        if found["code"]:
            named = re.fullmatch(r"`([a-z0-9-]+/[a-z0-9-]+)`", found["code"])
            return cause_reference(named[1], links) if named else found["code"]
        return "&lt;"

    return _SPECIAL.sub(mended, visible(text))


def cause_reference(cause: str, links: Links) -> str:
    """The id of a cause, as a link where it has a page."""
    target = links.cause(cause)
    return f"[`{cause}`]({target})" if target else f"`{cause}`"


def _head(cause: Cause) -> str:
    facts = [f"`{cause.id}`", cause.kind, f"since gradfix {cause.since}"]
    facts += [cause.status] if cause.status != "stable" else []
    facts += [f"in {library} {releases}" for library, releases in cause.applies.items()]
    return f"# {plain(cause.title)}\n\n{plain(cause.summary)}\n\n{', '.join(plain(fact) for fact in facts)}"


def _messages(messages: Sequence[Sequence[str]]) -> Iterator[Block]:
    firsts = list(dict.fromkeys(samples[0] for samples in messages if samples))
    others = list(dict.fromkeys(text for samples in messages for text in samples if text not in firsts))
    if not firsts:
        return
    yield Prose(text="## What is printed")
    yield Code(text="\n\n".join(firsts[:4]), language="text")
    rest = [*firsts[4:], *others]
    if rest:
        yield Code(text="\n\n".join(rest), language="text", fold=f"Other wordings, releases and values ({len(rest)})")


def _fixes(cause: Cause) -> Iterator[Block]:
    if cause.fixes:
        yield Prose(text="## Fixes")
    for number, fix in enumerate(cause.fixes, start=1):
        meaning = f"`{fix.applicability}`: {APPLICABILITY[fix.applicability]}"
        yield Prose(text=f"**{number}. {plain(fix.title)}** ({meaning})\n\n{plain(fix.because)}")
        if fix.command:
            yield Code(text=fix.command, language="console")


def _myths(myths: Sequence[Myth], links: Links) -> str:
    lines = ["## What not to do", ""] if myths else []
    for myth in myths:
        target = links.myth(myth.experiment) if myth.experiment else None
        lines.append(f"- {plain(myth.remedy)}: {plain(myth.why)}" + (f" ([experiment]({target}))" if target else ""))
    return "\n".join(lines)


def _look_alikes(cause: Cause, links: Links) -> str:
    lines = ["## Look-alikes", ""] if cause.look_alikes or cause.proves_not else []
    lines += [f"- {cause_reference(one.cause, links)}: {plain(one.decides)}" for one in cause.look_alikes]
    if cause.proves_not:
        lines += ["", f"What a match does not prove: {plain(cause.proves_not)}"]
    return "\n".join(lines)


def _programs(cause: Cause, shapes: Sequence[Shape]) -> Iterator[Block]:
    if not shapes:
        return
    needs = ", ".join(f"`{one}`" for one in cause.needs) or "torch on a CPU"
    yield Prose(text=f"## Programs\n\nThe smallest programs with this cause; they need {needs}.")
    for shape in shapes:
        yield Prose(text=f"### {shape.name.replace('-', ' ').capitalize()}")
        yield Code(text=shape.broken, language="python")
        if not shape.printed:
            yield Prose(text="What it prints is not recorded.")
        yield from (_recording(printed, is_old=index > 0) for index, printed in enumerate(shape.printed))
        if shape.fixed is not None:
            yield Prose(text="The fix:")
            yield Code(text=unified_diff(shape.broken, shape.fixed), language="diff")
            yield Code(text=shape.fixed, language="python", fold="The fixed program")


def _recording(printed: Printed, *, is_old: bool) -> Code:
    lines = printed.text.rstrip("\n").count("\n") + 1
    is_folded = is_old or lines >= LONG
    said = f"What it prints: {visible(printed.versions) or printed.name} ({lines} lines)"
    return Code(text=printed.text or "(nothing)", language="text", fold=said if is_folded else None)


def unified_diff(broken: str, fixed: str) -> str:
    """The fix as a diff from broken.py to fixed.py."""
    lines = difflib.unified_diff(broken.splitlines(), fixed.splitlines(), "broken.py", "fixed.py", n=2, lineterm="")
    return "\n".join(lines)
