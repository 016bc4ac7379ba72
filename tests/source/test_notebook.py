"""Notebooks: cells read as one program, magics tolerated, and edits that touch nothing but the source they are for."""

from __future__ import annotations

import json
import pathlib

import pytest

from explainer.fix.splice import make_patch
from explainer.model.incident import ExceptionRecord, Frame, Incident
from explainer.model.patch import Edit
from explainer.source.notebook import blank_magics, parse_notebook, place_frames, read_notebook
from explainer.source.program import read_program
from explainer.source.text import Unreadable

HEAD = '{\n "cells": [\n  {\n   "cell_type": "code",\n   "execution_count": 3,\n   "metadata": {"z": 1.50, "a": [ ]},\n   "outputs": [{"text": "h += x\\n"}],\n   "source": '
TAIL = '\n  }\n ],\n "metadata": {},\n "nbformat": 4\n}'
LIST = '[\n    "# caf\\u00e9\\n",\n    "h += x  # \\ud83d\\ude00\\n",\n    "h.sum()"\n   ]'

UNREAD = {
    "no JSON": b"h += x\n",
    "no cells": b'{"metadata": {}}',
    "cells that are no list": b'{"cells": {"source": "x"}}',
    "a cell that is no object": b'{"cells": [1]}',
    "two sources": b'{"cells": [{"cell_type": "code", "source": "a", "source": "b"}]}',
    "cut": (HEAD + '["h').encode(),
    "not UTF-8": b'{"cells": [{"cell_type": "code", "source": "\xff"}]}',
}


@pytest.mark.parametrize("data", UNREAD.values(), ids=UNREAD.keys())
def test_unreadable(data: bytes, tmp_path: pathlib.Path) -> None:
    """What is no notebook is refused with a reason, and costs the program nothing but that file."""
    (tmp_path / "nb.ipynb").write_bytes(data)
    with pytest.raises(Unreadable, match="nb.ipynb: is no notebook"):
        read_notebook(str(tmp_path / "nb.ipynb"))
    program = read_program(str(tmp_path), ["nb.ipynb"])
    assert (program.order, len(program.faults)) == ((), 1)


def edited(source: str, old: str, new: str, *, tail: str = TAIL, encoding: str = "utf-8") -> str:
    """The document with `old` replaced in the text of its code, as a patch writes it."""
    data = (HEAD + source + tail).encode(encoding)
    notebook = parse_notebook("/p/nb.ipynb", data)
    start = notebook.text.index(old)
    edit = Edit(file="/p/nb.ipynb", start=start, end=start + len(old), new=new)
    patch = make_patch([edit], {"/p/nb.ipynb": notebook}, "/p")
    assert not isinstance(patch, str), patch
    (file,) = patch.files
    assert json.loads(file.after.decode(encoding))["cells"][0]["metadata"] == {"z": 1.5, "a": []}
    after = file.after.decode(encoding)
    assert after.startswith(HEAD)
    assert after.endswith(tail)
    return after[len(HEAD) : len(after) - len(tail)]


EDITS = {
    "a word": ("h += x", "h = h + x", LIST.replace("h += x", "h = h + x")),
    "a line before": ("h += x", "h = 1\nh += x", LIST.replace('"h += x', '"h = 1\\n",\n    "h += x')),
    "a line less": ("h += x  # \U0001f600\n", "", LIST.replace('    "h += x  # \\ud83d\\ude00\\n",\n', "")),
    "the last line": ("h.sum()", "h.mean()\nk", LIST.replace('"h.sum()"', '"h.mean()\\n",\n    "k"')),
    "the last line less": ("h.sum()", "", LIST.replace(',\n    "h.sum()"', "")),
    "the first line": ("# café", "#", LIST.replace("# caf\\u00e9", "#")),
    "all of it": ("# café\nh += x  # \U0001f600\nh.sum()", "h", '[\n    "h"\n   ]'),
    "a quote and a backslash": ("h.sum()", 'h["\\t"]', LIST.replace("h.sum()", 'h[\\"\\\\t\\"]')),
    "beyond ASCII": ("h.sum()", "é", LIST.replace("h.sum()", "\\u00e9")),
}


@pytest.mark.parametrize(("old", "new", "source"), EDITS.values(), ids=EDITS.keys())
def test_a_list_of_lines(old: str, new: str, source: str) -> None:
    """Only the strings of the edited lines change; escapes, indentation and the rest of the file stay byte for byte."""
    assert edited(LIST, old, new) == source


STRINGS = {
    "one string": ('"h += x\\nh.sum()"', '"h = h + x\\nh.sum()"'),
    "one string with raw letters": ('"# é\\nh += x"', '"# é\\nh = h + x"'),
    "escapes of every kind": ('"\\/\\u002f\\t\\"\\n#\\nh += x"', None),
    "a list on one line": ('["a\\n", "h += x\\n"]', '["a\\n", "h = h + x\\n"]'),
    "two lines in one string of a list": ('["a\\nb\\n", "h += x\\nc"]', '["a\\nb\\n", "h = h + x\\n", "c"]'),
    "carriage returns": ('["a\\r\\n", "h += x\\r\\n"]', '["a\\r\\n", "h = h + x\\r\\n"]'),
}


@pytest.mark.parametrize(("source", "wanted"), STRINGS.values(), ids=STRINGS.keys())
def test_forms_of_source(source: str, wanted: str | None) -> None:
    """A source that is one string stays one, a list stays a list; a byte order mark and line ends of the file stay."""
    wanted = wanted or source.replace("h += x", "h = h + x")
    assert edited(source, "h += x", "h = h + x") == wanted
    assert edited(source, "h += x", "h = h + x", encoding="utf-8-sig") == wanted
    assert edited(source, "h += x", "h = h + x", tail=TAIL.replace("\n", "\r\n") + "\r\n") == wanted


MAGICS = {
    "plain Python": ("a = 5 % 2", "a = 5 % 2"),
    "a percent that goes on": ("a = (5\n  % 2)", "a = (5\n  % 2)"),
    "a line magic": ("%matplotlib inline\na = 1", "0                 \na = 1"),
    "a shell line": ("!ls\na = 1", "0  \na = 1"),
    "a long shell line": ("!pip install \\\n  torch\na = 1", "0             \n       \na = 1"),
    "in a block": ("if a:\n    !ls", "if a:\n    0  "),
    "an assignment": ("files = !ls\na = 1", "files = 0  \na = 1"),
    "help": ("torch.nn?\na = 1", "0        \na = 1"),
    "a timed cell": ("%%time\na = 1", "      \na = 1"),
    "another language": ("%%bash\nls", "      \n  "),
    "HTML": ("%%html\na = 1", "      \n     "),
    "no Python": ("a = = 1\nb", "       \n "),
    "await": ("await f()", "await f()"),
}


@pytest.mark.parametrize(("source", "parsed"), MAGICS.values(), ids=MAGICS.keys())
def test_magics(source: str, parsed: str) -> None:
    """Magics are blanked for the parser at equal length; a cell that does not parse even so is blanked whole."""
    assert blank_magics(source) == parsed
    assert len(parsed) == len(source)


def notebook(*cells: tuple[int | None, str]) -> bytes:
    return json.dumps(
        {"cells": [{"cell_type": "code", "execution_count": count, "source": text} for count, text in cells]}
    ).encode()


TWO = notebook((3, "import torch\nh = 1\nh += x"), (7, "y = 2\nh += x"))
BETWEEN_CELLS = {
    "after the last line of a cell": ("insert_after", 0, 2, "import torch\nh = 1\nh += x\nk", "y = 2\nh += x"),
    "before the first line of a cell": ("insert_before", 1, 0, "import torch\nh = 1\nh += x", "k\ny = 2\nh += x"),
    "after the last line of the last cell": ("insert_after", 1, 1, "import torch\nh = 1\nh += x", "y = 2\nh += x\nk"),
    "the last line of a cell taken out": ("remove_statement", 0, 2, "import torch\nh = 1\n", "y = 2\nh += x"),
}


@pytest.mark.parametrize(
    ("name", "cell", "number", "first", "second"), BETWEEN_CELLS.values(), ids=BETWEEN_CELLS.keys()
)
def test_edges_of_cells(name: str, cell: int, number: int, first: str, second: str) -> None:
    """What a codemod puts after the last line or before the first one of a cell lands in that cell."""
    from explainer.fix import codemod

    read = parse_notebook("/p/nb.ipynb", TWO)
    statement = read.tree.body[number if cell == 0 else number + 3]
    arguments = (read, statement) if name == "remove_statement" else (read, statement, "k")
    patch = make_patch([getattr(codemod, name)(*arguments)], {"/p/nb.ipynb": read}, "/p")
    sources = [one["source"] for one in json.loads(patch.files[0].after)["cells"]]
    assert sources == [first, second]


REFUSED = {
    "over the end of a cell": (Edit(file="/p/nb.ipynb", start=20, end=40, new="k"), "over the end of a cell"),
    "what no longer parses": (Edit(file="/p/nb.ipynb", start=0, end=6, new="k k"), "does not parse"),
    "nothing": (Edit(file="/p/nb.ipynb", start=0, end=6, new="import"), "nothing changes"),
}


@pytest.mark.parametrize(("edit", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_edits(edit: Edit, reason: str) -> None:
    """An edit that cannot be written into one cell, or breaks it, makes no patch."""
    read = parse_notebook("/p/nb.ipynb", TWO)
    assert reason in make_patch([edit], {"/p/nb.ipynb": read}, "/p")


FRAMES = {
    "a cell by its count": (Frame(file="Cell In[7]", line=2, code="h += x"), 6),
    "an older name": (Frame(file="<ipython-input-3-ab12cd>", line=3, code="h += x"), 3),
    "Colab's file": (Frame(file="/tmp/ipython-input-9-3855.py", line=2, code="h = 1"), 2),
    "a count without its code": (Frame(file="Cell In[7]", line=2), 6),
    "code that has changed since": (Frame(file="Cell In[7]", line=2, code="h -= x"), None),
    "another cell by now": (Frame(file="Cell In[99]", line=2, code="h = 1"), 2),
    "no such cell": (Frame(file="Cell In[99]", line=2), None),
    "a line that is not there": (Frame(file="Cell In[7]", line=20), None),
    "a library": (Frame(file="/tmp/ipykernel_1/2.py", line=2, code="h = 1", library="torch"), None),
    "a plain file": (Frame(file="train.py", line=2, code="h = 1"), None),
}


@pytest.mark.parametrize(("frame", "line"), FRAMES.values(), ids=FRAMES.keys())
def test_frames(frame: Frame, line: int | None) -> None:
    """A frame of a cell is found by execution count and code; where they do not agree on one cell it stays unknown."""
    read = parse_notebook("/p/nb.ipynb", TWO)
    incident = Incident(exceptions=(ExceptionRecord(type="E", frames=(frame,)),))
    (placed,) = place_frames(incident, read).exceptions[0].frames
    assert (placed.file, placed.line) == (("/p/nb.ipynb", line) if line else (frame.file, frame.line))
