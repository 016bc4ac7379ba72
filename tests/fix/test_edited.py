"""A fix that a person changes before accepting it."""

from __future__ import annotations

import json
import pathlib

from explainer.model.finding import Fix
from explainer.model.journal import Refused
from explainer.model.patch import FilePatch
from explainer.workflow import edit_fix, lines_of, texts_of

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


def test_advice_and_what_is_no_notebook(tmp_path: pathlib.Path) -> None:
    """What has no edit, and what cannot be read, is refused with the reason."""
    advice = Fix(id="say", title="Say it", applicability="display", kind="advice")
    assert texts_of(advice) == Refused(reason="`say` has no edit: Say it")
    refused = texts_of(fix_of(tmp_path / "a.ipynb"))
    assert isinstance(refused, Refused)
    assert refused.reason.startswith("a.ipynb: ")


def notebook(first: str, second: str) -> bytes:
    """Two cells, the second run as number 7."""
    cells = [
        {
            "cell_type": "code",
            "execution_count": count,
            "metadata": {},
            "outputs": [],
            "source": source.splitlines(True),
        }
        for count, source in ((None, first), (7, second))
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1).encode()


def test_a_cell_of_a_notebook(tmp_path: pathlib.Path) -> None:
    """The cell that changes is edited by itself; the others stay byte for byte, and what does not parse is refused."""
    path = tmp_path / "a.ipynb"
    before, after = notebook("import torch\n", "h = 1\nh += x\n"), notebook("import torch\n", "h = 1\nh = h + x\n")
    path.write_bytes(before)
    change = FilePatch(file=str(path), before=before, after=after)
    fix = Fix(id="out", title="", applicability="safe", kind="edit", patch="", changes=(change,))
    name = f"{path} Cell In[7]"
    assert texts_of(fix) == {name: "h = 1\nh = h + x\n"}
    assert lines_of(fix) == {name: 2}
    done = edit_fix(fix, {name: "h = 1\nh = x + h\n"}, root=str(tmp_path))
    assert done.changes[0].after == notebook("import torch\n", "h = 1\nh = x + h\n")
    assert "+h = x + h" in done.patch
    assert isinstance(edit_fix(fix, {name: "h = (\n"}, root=str(tmp_path)), Refused)


def test_changed(tmp_path: pathlib.Path) -> None:
    """The diff and the bytes are those of the person's text; line ends and what was not touched stay."""
    path = str(tmp_path / "train.py")
    fix = fix_of(tmp_path / "train.py")
    assert texts_of(fix) == {path: AFTER.decode()}
    done = edit_fix(fix, {path: AFTER.decode().replace("h + x", "x + h")}, root=str(tmp_path))
    assert done.changes[0].after == b"h = x + h\r\ny = h\r\n"
    assert "-h += x\r\n+h = x + h\r\n y = h" in done.patch
