"""IPython's, rich's and pytest's layouts, as these programs really print them, and notebooks."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

from explainer.errors import UnreadableInput
from explainer.ingest.notebook import read_notebook

PROGRAM = """def scale(values, by):
    return [value / by for value in values]


def step(batch):
    total = sum(scale(batch, 0))
    return total


step([1, 2])
"""


def failing(tmp_path, name: str = "train.py"):
    path = tmp_path / name
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize("width", [60, 100, 160])
@pytest.mark.parametrize("ascii_only", [False, True], ids=["drawn", "ascii"])
def test_rich_box(read, tmp_path, width: int, ascii_only: bool) -> None:
    """A boxed traceback gives files, lines and code; a path that is longer than the box is put together again."""
    from rich.console import Console
    from rich.traceback import Traceback

    path = failing(tmp_path, "a_very_long_name_of_a_training_program_that_does_not_fit_into_the_box.py")
    out = io.StringIO()
    try:
        exec(compile(PROGRAM, str(path), "exec"), {})
    except ZeroDivisionError as error:
        shown = Traceback.from_exception(type(error), error, error.__traceback__, width=width)
        Console(file=out, width=width, legacy_windows=False, safe_box=ascii_only, no_color=True).print(shown)
    text = out.getvalue()
    if ascii_only:
        text = text.translate(str.maketrans("╭╮╰╯─│❱", "++++-|>"))
    (record,) = read(text).exceptions
    assert record.type == "ZeroDivisionError"
    mine = [frame for frame in record.frames if frame.file == str(path)]
    assert [frame.line for frame in mine] == [10, 6, 2, *([2] if sys.version_info < (3, 12) else [])]
    assert mine[1].code == "total = sum(scale(batch, 0))"


def test_rich_chain(read) -> None:
    """Boxes of a chain are linked."""
    text = (
        "╭───── Traceback (most recent call last) ─────╮\n│ /p/a.py:3 in f                              │\n"
        "│ ❱ 3 │   x = d[1]                            │\n╰─────────────────────────────────────────────╯\nKeyError: 1\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "╭───── Traceback (most recent call last) ─────╮\n│ /p/a.py:5 in g                              │\n"
        "│ ❱ 5 │   raise ValueError                    │\n╰─────────────────────────────────────────────╯\nValueError: no\n"
    )
    assert [(record.type, record.link) for record in read(text).exceptions] == [
        ("KeyError", None),
        ("ValueError", "during_handling"),
    ]


@pytest.mark.parametrize("mode", ["Context", "Verbose", "Plain"])
@pytest.mark.parametrize("colour", [False, True], ids=["plain", "coloured"])
def test_ipython(read, tmp_path, mode: str, colour: bool) -> None:
    """What the installed IPython prints of a failing file."""
    ultratb = pytest.importorskip("IPython.core.ultratb")
    path = failing(tmp_path)
    try:
        exec(compile(PROGRAM, str(path), "exec"), {})
    except ZeroDivisionError:
        kind, value, tb = sys.exc_info()
        try:
            formatter = ultratb.FormattedTB(mode=mode, theme_name="linux" if colour else "nocolor", tb_offset=1)
        except TypeError:
            formatter = ultratb.FormattedTB(mode=mode, color_scheme="Linux" if colour else "NoColor", tb_offset=1)
        text = formatter.text(kind, value, tb)
    (record,) = read(text + "\n").exceptions
    assert record.type == "ZeroDivisionError"
    mine = [(frame.line, frame.code) for frame in record.frames if frame.file == str(path)]
    assert mine[:2] == [(10, "step([1, 2])"), (6, "total = sum(scale(batch, 0))")]


CELLS = {
    "jupyter 8": "Cell In[3], line 2\n      1 x = 1\n----> 2 loss.backward()\n",
    "jupyter 8 without space": "Cell In [3], line 2\n----> 2 loss.backward()\n",
    "jupyter 7": "Input In [3], in <cell line: 2>()\n      1 x = 1\n----> 2 loss.backward()\n",
    "ipython 5": "<ipython-input-3-1fafa68fd139> in <module>\n      1 x = 1\n----> 2 loss.backward()\n",
    "colab": "[<ipython-input-3-1fafa68fd139>](https://localhost:8080/#) in <cell line: 2>()\n      1 x = 1\n----> 2 loss.backward()\n",
    "colab 2025": "/tmp/ipython-input-3-392817.py in <cell line: 0>()\n      1 x = 1\n----> 2 loss.backward()\n",
}


@pytest.mark.parametrize("location", CELLS.values(), ids=CELLS.keys())
def test_cells(read, location: str) -> None:
    """Every generation of notebooks names its cell in another way."""
    text = (
        "-" * 75 + "\nRuntimeError                              Traceback (most recent call last)\n" + location + "\n"
        "File ~/env/lib/python3.10/site-packages/torch/_tensor.py:487, in Tensor.backward(self, gradient)\n"
        "    477 if has_torch_function_unary(self):\n--> 487     torch.autograd.backward(\n    488         self\n\n"
        "RuntimeError: element 0 of tensors does not require grad\n"
    )
    (record,) = read(text).exceptions
    assert (record.frames[0].line, record.frames[0].code, record.frames[0].library) == (2, "loss.backward()", None)
    assert (record.frames[-1].line, record.frames[-1].function, record.frames[-1].library) == (
        487,
        "Tensor.backward",
        "torch",
    )


def test_pytest_report(read, tmp_path) -> None:
    """What pytest prints of a failing test gives the exception, its file and line."""
    (tmp_path / "test_it.py").write_text("def test_it():\n    values = {}\n    values['loss']\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    record = read(run.stdout).exceptions[0]
    assert (record.type, record.message) == ("KeyError", "'loss'")
    assert (record.frames[0].file, record.frames[0].line) == ("test_it.py", 3)


def notebook(*outputs: dict) -> str:
    cells = [{"cell_type": "markdown", "source": ["x"]}, *({"cell_type": "code", "outputs": [one]} for one in outputs)]
    return json.dumps({"nbformat": 4, "cells": cells})


ERROR = {
    "output_type": "error",
    "ename": "RuntimeError",
    "evalue": "element 0 of tensors does not require grad",
    "traceback": [
        "\x1b[0;31m---------------------------------------------------------------------------\x1b[0m",
        "\x1b[0;31mRuntimeError\x1b[0m                              Traceback (most recent call last)",
        "Cell \x1b[0;32mIn[3], line 2\x1b[0m\n\x1b[1;32m      1\x1b[0m x=1\n\x1b[0;32m----> 2\x1b[0m loss\x1b[38;5;241m.\x1b[39mbackward()",
        "\x1b[0;31mRuntimeError\x1b[0m: element 0 of tensors does not require grad",
    ],
}


def test_notebook() -> None:
    """A failed cell's output, with its colours, and what an earlier cell printed."""
    printed = {"output_type": "stream", "name": "stdout", "text": ["trainable params: 0 || all params: 7\n"]}
    (incident,) = read_notebook(notebook(printed, ERROR), "a.ipynb")
    assert incident.exceptions[0].frames[0].code == "loss.backward()"
    assert incident.fact("trainable_parameters").value == "0"


def test_notebook_with_two_failures() -> None:
    """Two failed cells are two incidents."""
    assert len(list(read_notebook(notebook(ERROR, ERROR), "a.ipynb"))) == 2


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"cells": 3}', "[" * 5000], ids=["empty", "cut", "a list", "no cells", "deep"]
)
def test_no_notebook(text: str) -> None:
    """What is no notebook is refused with a reason."""
    with pytest.raises(UnreadableInput, match="no notebook"):
        list(read_notebook(text, "a.ipynb"))
