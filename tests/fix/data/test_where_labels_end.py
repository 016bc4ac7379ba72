"""Where labels are marked as ignored, and the others cut off."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from tests.fix.rewriting import failed, write

CASES = {
    "cut behind a limit": ("labels = ([-100] * len(prompt) + reply)[:limit]", ["cuts the others off"]),
    "a constant": ("IGNORE = -100\nlabels = [IGNORE] * len(prompt) + reply", ["marks labels"]),
    "filled": ("labels = ids.masked_fill(mask == 0, -100)", ["marks labels"]),
    "another number": ("labels = [0] * len(prompt) + reply", []),
    "a list of several": ("pair = [-100, 3] * 2", []),
    "an index": ("last = ids[-100:]", []),
}


@pytest.mark.parametrize(("line", "told"), CASES.values(), ids=CASES)
def test_the_line_is_named(line: str, told: list[str], tmp_path: pathlib.Path) -> None:
    """It is the author's to say what is at fault: no edit."""
    program = write(tmp_path, {"train.py": line + "\n"})
    found = list(find_codemod("where_labels_end")(Context(program=program, incident=failed())))
    assert [one.edits for one in found] == [()] * len(told)
    assert all(words in (one.culprit.why or "") for words, one in zip(told, found, strict=True))
