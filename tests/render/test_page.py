"""The page of a cause: everything that its folder says, links where there are pages, and nothing that runs."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from explainer.catalog.shape import read_shapes
from explainer.model.rule import Cause, FixRule, LookAlike, Myth
from explainer.model.shape import Printed, Shape
from explainer.render.page import Code, Links, Prose, cause_page, link_prose, to_markdown, unified_diff
from explainer.render.web import to_html

LINKS = Links(cause=lambda name: f"{name}.html" if name == "nan/known" else None, myth=lambda slug: f"myths#{slug}")
HOSTILE = "<script>alert(1)</script> [x](javascript:alert(1)) <img src=x onerror=alert(1)> \u202e\x1b[31m"
PROSE = "# T\n\n## Why\n\nSee `nan/known`, https://example.org/a.\n\n## References\n\n- https://example.org/r\n"
CAUSE = Cause(
    id="nan/this", title="A title", summary="A summary.", kind="failure", status="stable", since="0.1.0", prior={},
    applies={"torch": ">=2.1"}, needs=("peft",),
    fixes=(FixRule(id="f", title="Do it", kind="command", applicability="safe", because="it is right", command="run it"),),
    myths=(Myth(remedy="a remedy", why="it is wrong", experiment="slug"),),
    look_alikes=(LookAlike(cause="nan/known", decides="which?"), LookAlike(cause="nan/unknown", decides="what?")),
    proves_not="The line.",
)  # fmt: skip
SHAPE = Shape(
    name="one-way", broken="a = 1\nb = 2\n", fixed="a = 1\nb = 3\n",
    printed=(Printed(name="2.13.0", versions="python 3.11, torch 2.13.0", text="short\n"), Printed(name="1.12.1", versions="torch 1.12.1", text="older\n")),
)  # fmt: skip

UNCHANGED = {
    "an unknown cause": "see `nan/unknown`",
    "code": "write `x < y` and `https://example.org/a`",
    "an indented program": "    if a < b: print('https://example.org')",
    "a fence": "```\na < b `nan/known`\n```",
    "a link": "[a page](https://example.org/a)",
    "an address in brackets": "<https://example.org/a>",
    "a span over two lines": "`a\n< b`",
}
MENDED = {
    "a cause": ("see `nan/known`.", "see [`nan/known`](nan/known.html)."),
    "an address": ("at https://example.org/a.", "at <https://example.org/a>."),
    "an anchor": ("https://example.org/a.html#b_c, d", "<https://example.org/a.html#b_c>, d"),
    "markup": ("found <class 'NoneType'>", "found &lt;class 'NoneType'>"),
    "after code": ("`a` < `nan/known`", "`a` &lt; [`nan/known`](nan/known.html)"),
}


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED.keys())
def test_prose_that_stays(text: str) -> None:
    """Code, links and names without a page stay as they are."""
    assert link_prose(text, LINKS) == text


@pytest.mark.parametrize(("text", "mended"), MENDED.values(), ids=MENDED.keys())
def test_prose_is_linked(text: str, mended: str) -> None:
    """Ids of causes and bare addresses become links, markup becomes text."""
    assert link_prose(text, LINKS) == mended


def test_the_page_says_everything() -> None:
    """Title, releases, messages, prose, fixes, myths, look-alikes, programs and references, in this order."""
    text = to_markdown(cause_page(CAUSE, PROSE, [SHAPE], [("first", "second")], LINKS))
    parts = ["# A title", "A summary.", "torch \\>=2.1", "first", "second", "## Why", "[`nan/known`](nan/known.html)", "**1. Do it**", "`safe`",
             "it is right", "run it", "[experiment](myths#slug)", "[`nan/known`](nan/known.html): which?", "- `nan/unknown`: what?", "The line.",
             "`peft`", "### One way", "b = 2", "short", "<details", "torch 1.12.1", "older", "-b = 2\n+b = 3", "The fixed program", "## References"]  # fmt: skip
    place = 0
    for part in parts:
        place = text.find(part, place)
        assert place >= 0, part
    assert "# T\n" not in text


def test_what_is_long_is_folded() -> None:
    """A long recording and those of older releases are folded; a short one of the newest is open."""
    long = Shape(name="a", broken="x", printed=(Printed(name="2.13.0", versions="", text="line\n" * 40),))
    blocks = cause_page(CAUSE, "# T\n", [SHAPE, long], [], LINKS)
    folds = [block.fold for block in blocks if isinstance(block, Code) and block.language == "text"]
    assert [fold and fold.rpartition("(")[2] for fold in folds] == [None, "1 lines)", "40 lines)"]


def test_a_shape_without_recording_says_so() -> None:
    """A program that was not run says that, and shows no empty block."""
    blocks = cause_page(CAUSE, "# T\n", [Shape(name="plain", broken="x = 1")], [], LINKS)
    assert "What it prints is not recorded." in [block.text for block in blocks]
    assert [block.text for block in blocks if isinstance(block, Code)][1:] == ["x = 1"]


def test_the_diff_applies_to_the_program() -> None:
    """The diff names the two files and holds their difference alone."""
    assert unified_diff("a\nb\nc\n", "a\nB\nc\n") == "--- broken.py\n+++ fixed.py\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c"


class Seen(HTMLParser):
    """Collects the tags of a page, with what could run or load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.attributes = [], []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append(tag)
        self.attributes += attrs


BLOCKS = {
    "prose": Prose(text=HOSTILE),
    "linked prose": Prose(text=link_prose(HOSTILE, LINKS)),
    "a program": Code(text=HOSTILE, language="python"),
    "a recording": Code(text=HOSTILE, language="text", fold=HOSTILE),
    "a diff": Code(text=HOSTILE, language="diff"),
}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS.keys())
def test_nothing_of_a_rule_runs(block: Prose | Code) -> None:
    """Markup in rules is text; the page has no script, no event, no dangerous address, and a policy against them."""
    page = to_html(HOSTILE, [block])
    seen = Seen(page)
    assert {"script", "img"}.isdisjoint(seen.tags)
    assert not [one for one in seen.attributes if one[0].startswith("on") or "javascript:" in str(one[1]).lower()]
    assert "default-src 'none'" in page
    assert "\u202e" not in page and "\x1b" not in page


def test_every_cause_has_a_page(catalog) -> None:
    """Each cause of the rule base makes a page with its programs, and each of its shapes stands in it."""
    for name in catalog.cause_ids:
        shapes = read_shapes(name)
        text = to_markdown(cause_page(catalog.cause(name), "# T\n", shapes, catalog.messages_of(name), LINKS))
        assert shapes or name == "other/unknown"
        assert all(f"### {shape.name.replace('-', ' ').capitalize()}" in text for shape in shapes), name
