"""A fix that a person changes before accepting it."""

from __future__ import annotations

import pathlib

from explainer.model.finding import Fix
from explainer.model.journal import Refused
from explainer.model.patch import FilePatch
from explainer.workflow import edit_fix, texts_of

BEFORE, AFTER = b"h += x\r\ny = h\r\n", b"h = h + x\r\ny = h\r\n"


def fix_of(path: pathlib.Path) -> Fix:
    path.write_bytes(BEFORE)
    change = FilePatch(file=str(path), before=BEFORE, after=AFTER)
    return Fix(id="out", title="", applicability="safe", kind="edit", patch="", changes=(change,))


def test_no_longer_python(tmp_path: pathlib.Path) -> None:
    """A text that does not parse is refused, with its line."""
    fix = fix_of(tmp_path / "train.py")
    done = edit_fix(fix, {str(tmp_path / "train.py"): "h = (\n"}, root=str(tmp_path))
    assert done == Refused(reason="train.py: the result does not parse (line 1): '(' was never closed")


def test_back_to_what_it_was(tmp_path: pathlib.Path) -> None:
    """A text that changes nothing is no fix."""
    fix = fix_of(tmp_path / "train.py")
    done = edit_fix(fix, {str(tmp_path / "train.py"): BEFORE.decode()}, root=str(tmp_path))
    assert done == Refused(reason="nothing changes")


def test_advice_and_notebooks(tmp_path: pathlib.Path) -> None:
    """What has no edit, and what is edited elsewhere, is refused with the reason."""
    advice = Fix(id="say", title="Say it", applicability="display", kind="advice")
    assert texts_of(advice) == Refused(reason="`say` has no edit: Say it")
    notebook = fix_of(tmp_path / "a.ipynb")
    assert texts_of(notebook) == Refused(reason="a.ipynb: a notebook is edited in its own editor")


def test_changed(tmp_path: pathlib.Path) -> None:
    """The diff and the bytes are those of the person's text; line ends and what was not touched stay."""
    path = str(tmp_path / "train.py")
    fix = fix_of(tmp_path / "train.py")
    assert texts_of(fix) == {path: AFTER.decode()}
    done = edit_fix(fix, {path: AFTER.decode().replace("h + x", "x + h")}, root=str(tmp_path))
    assert done.changes[0].after == b"h = x + h\r\ny = h\r\n"
    assert "-h += x\r\n+h = x + h\r\n y = h" in done.patch
