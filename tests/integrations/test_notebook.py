"""`%load_ext gradfix` in real kernels: a card below the traceback, the fixed cell as the next one, trace and verify."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from explainer.integrations.notebook.session import Ran, Session, as_script
from explainer.store.memory import read_events
from tests.conftest import PATH

MODEL = "torch.manual_seed(0)\nmodel = torch.nn.Linear(4, 4)\nopt = torch.optim.SGD(model.parameters(), lr=0.1)"
STEP = "%precision 3\ndef step(x):\n    h = torch.relu(model(x))\n    h += 1\n    return h.sum()\n"
LOOP = (
    "for _ in range(4):\n    loss = step(torch.randn(2, 4))\n    opt.zero_grad()\n    loss.backward()\n    opt.step()"
)
CELLS = ["import torch", MODEL, "%load_ext gradfix", STEP, LOOP]
ASKED = [
    "%gradfix",
    "%gradfix trace",
    "%gradfix verify 2",
    "%gradfix apply",
    "%gradfix apply nothing-such",
    "%gradfix fly",
]


def execute(cells: list[str], folder: str) -> list[tuple[dict[str, str], list[dict]]]:
    """Run a notebook in a kernel: for each cell its outputs, by kind, in order of the first; and its payload."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
    payloads: dict[int, list[dict]] = {}

    def keep(cell, cell_index, execute_reply):
        payloads[cell_index] = execute_reply["content"].get("payload", [])

    client = nbclient.NotebookClient(
        notebook, allow_errors=True, on_cell_executed=keep, timeout=120, resources={"metadata": {"path": folder}}
    )
    client.execute()
    return [(_by_kind(cell.outputs), payloads.get(index, [])) for index, cell in enumerate(notebook.cells)]


def _by_kind(outputs) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in outputs:
        if one.output_type == "error":
            found["error"] = found.get("error", "") + one.evalue
        elif one.output_type == "stream":
            found[one.name] = found.get(one.name, "") + one.text
        else:
            found.update({kind: found.get(kind, "") + text for kind, text in one.data.items()})
    return found


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """A session that fails and is taken through every command, by the text of its cells."""
    pytest.importorskip("torch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", PATH)
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("GRADFIX_NO_MEMORY", "0")
        patch.setenv("GRADFIX_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        cells = [*CELLS, *ASKED]
        done = dict(zip(cells, execute(cells, str(tmp_path_factory.mktemp("notebook"))), strict=True))
        fixed = done["%gradfix apply"][1][0]["text"]
        again = execute([*CELLS[:2], fixed, LOOP, "all(p.grad.isfinite().all() for p in model.parameters())"], ".")
        kept = read_events()
    return done, fixed, again, kept


@pytest.mark.torch
def test_the_card_stands_below_the_traceback(session) -> None:
    """Cause, line in its cell, and the fix as a diff; in HTML for a notebook, as text for any other."""
    outputs, _ = session[0][LOOP]
    assert list(outputs)[0] == "error"
    assert "inplace/op-on-saved-tensor  likely" in outputs["text/plain"]
    assert "Cell In[4]:4 in step  (writes `h`, the result of Relu, in place)" in outputs["text/plain"]
    assert '<div class="gradfix"' in outputs["text/html"]
    assert "-    h += 1\n+    h = h + 1" in outputs["text/html"]
    assert "%gradfix apply   %gradfix trace   %gradfix verify" in outputs["text/plain"]


@pytest.mark.torch
def test_the_last_failure_again(session) -> None:
    """The same card, without another traceback."""
    assert session[0]["%gradfix"][0] == {k: v for k, v in session[0][LOOP][0].items() if k != "error"}


@pytest.mark.torch
def test_the_traced_line(session) -> None:
    """The cell runs again, fails again, and the line that wrote is named as seen."""
    outputs, _ = session[0]["%gradfix trace"]
    assert outputs["error"].startswith("one of the variables needed for gradient computation")
    assert "traced: Cell In[4], line 4: `add_` writes what Relu saved for backward" in outputs["stdout"]
    assert "explainer" not in outputs["text/plain"]


@pytest.mark.torch
def test_one_failure_is_remembered(session) -> None:
    """Neither the same card again nor the trace counts once more, or says that it was seen before."""
    assert [(one.kind, one.way) for one in session[3]] == [("failure", "notebook")]
    assert "seen before" not in session[0]["%gradfix trace"][0]["text/plain"]


@pytest.mark.torch
def test_the_fixed_cells_are_verified(session) -> None:
    """In another process, from the beginning, without magics; the verdict is that of `gradfix verify`."""
    told = session[0]["%gradfix verify 2"][0]["stdout"]
    assert told.startswith("running In[1], In[2], In[4] (fixed), In[5] from the beginning")
    assert "green  after" in told
    assert "2 of 2 parameters with a gradient, 2 steps" in told


@pytest.mark.torch
def test_the_fix_becomes_the_next_cell(session) -> None:
    """Its text, magics and all, is put into the next cell; there it works."""
    done, fixed, again, _ = session
    outputs, (payload,) = done["%gradfix apply"]
    assert (payload["source"], payload["replace"]) == ("set_next_input", False)
    assert fixed == STEP.replace("h += 1", "h = h + 1")
    assert "the next cell is In[4] with the fix `out-of-place` (safe); after it run In[5] again" in outputs["stdout"]
    assert again[-1][0]["text/plain"] == "True"


@pytest.mark.torch
def test_what_is_not_there_is_said(session) -> None:
    """One line, and the ids that there are; words that mean nothing get the help."""
    assert session[0]["%gradfix apply nothing-such"][0]["stderr"] == (
        "gradfix: there is no such edit; those of this failure: out-of-place, copy-what-is-saved\n"
    )
    assert session[0]["%gradfix fly"][0]["stdout"].startswith("%gradfix                the last failure again")


@pytest.mark.torch
def test_failures_of_other_kinds(tmp_path, monkeypatch) -> None:
    """What gradfix does not know, a cell that does not parse, an exit and an interrupt get nothing; a module beside is read."""
    pytest.importorskip("torch")
    monkeypatch.setenv("PYTHONPATH", PATH)
    (tmp_path / "beside.py").write_text(
        "import torch\n\ndef half(x):\n    h = x.exp()\n    h *= 2\n    return h.sum()\n"
    )
    unknown = ["1/0", "undefined_name", "for\n", "raise KeyboardInterrupt", "raise SystemExit(3)"]
    cells = ["%load_ext gradfix", *unknown, "%gradfix", "import beside, torch\nbeside.half(torch.ones(2, requires_grad=True)).backward()",
             "%gradfix apply", "%unload_ext gradfix", "torch.ones(2, requires_grad=True).backward()"]  # fmt: skip
    done = execute(cells, str(tmp_path))
    told = [{name: text for name, text in outputs.items() if "radfix" in text} for outputs, _ in done]
    assert [bool(one) for one in told] == [False] * 6 + [True, True, True, False, False]
    assert told[6]["stderr"] == "gradfix: no cell has failed yet in a way that gradfix knows\n"
    assert "beside.py:5" in told[7]["text/plain"]
    assert "+    h = h * 2" in told[7]["text/plain"]
    assert "edits a module, not a cell" in told[8]["stderr"]


@pytest.mark.slow
@pytest.mark.torch
def test_a_watched_block_in_a_kernel(tmp_path, monkeypatch) -> None:
    """`gradfix.watch()` shows its card in a notebook without the extension being loaded by hand."""
    pytest.importorskip("torch")
    monkeypatch.setenv("PYTHONPATH", PATH)
    block = "with gradfix.watch():\n    with torch.no_grad():\n        w.sum().backward()"
    done = execute(["import torch, gradfix\nw = torch.ones(2, requires_grad=True)", block], str(tmp_path))
    assert "grad mode is off where the failure was raised  [live]" in done[1][0]["text/plain"]


@pytest.mark.torch
def test_a_terminal_shows_text(tmp_path) -> None:
    """IPython in a terminal prints the card as text below the traceback."""
    pytest.importorskip("torch")
    pytest.importorskip("IPython")
    words = "%load_ext gradfix\nimport torch\ntorch.ones(2, requires_grad=True).backward()\n"
    command = [
        sys.executable,
        "-m",
        "IPython",
        "--simple-prompt",
        "--no-banner",
        "--no-confirm-exit",
        "--colors=NoColor",
    ]
    environment = {**os.environ, "PYTHONPATH": PATH, "IPYTHONDIR": str(tmp_path)}
    done = subprocess.run(command, input=words, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.stdout.index("Traceback") < done.stdout.index("backward/non-scalar-loss  ")
    assert "%gradfix trace   %gradfix verify" in done.stdout


KEPT = {
    "a later cell of another name": (["x = torch.randn(2, 4)", "y = torch.randn(2, 4)"], [1, 2]),
    "a cell of an own id": (["a = 1", "%load_ext gradfix", "%gradfix apply out-of-place"], [1]),
    "the same cell again": (["n = 1\nprint(n)", "m = 2", "n = 1\nprint(n)"], [2, 3]),
    "a cell that was edited": (["def f(x):\n    return x.exp_()", "def f(x):\n    return x.exp()"], [2]),
    "an edit that binds less": (["lr = 0.1\nsteps = 3\nwide = True", "lr = 0.1\nsteps = 3\n"], [1, 2]),
    "two short cells that do not parse": (["!ls /tmp", "!ls /usr"], [1, 2]),
}


@pytest.mark.parametrize(("texts", "numbers"), KEPT.values(), ids=KEPT)
def test_the_cells_that_make_the_program(texts: list[str], numbers: list[int]) -> None:
    """Each cell counts once, in the form that it last ran in; commands of ours are none."""
    session = Session()
    for number, text in enumerate(texts, start=1):
        session.add(Ran(number=number, text=text))
    assert [one.number for one in session.cells(Ran(number=99, text="fails()"))] == [*numbers, 99]


def test_cells_of_a_front_end_that_names_them() -> None:
    """The id decides, however little the texts are alike; one that failed does not count."""
    session = Session()
    session.add(Ran(number=1, text="a = 1", cell_id="one"))
    session.add(Ran(number=2, text="broken()", cell_id="two", has_failed=True))
    session.add(Ran(number=3, text="something_else()", cell_id="one"))
    assert [one.number for one in session.cells(Ran(number=4, text="last()", cell_id="three"))] == [3, 4]


def test_the_script_of_a_session() -> None:
    """Magics and shell commands are no part of it, offsets of lines stay, `display` is there where it is used."""
    cells = [Ran(number=1, text="%matplotlib inline\n!pip install torch\nx = 1"), Ran(number=3, text="display(x)")]
    script = as_script(cells, {1: "%matplotlib inline\nx = 2"})
    assert "pip" not in script
    space: dict[str, object] = {}
    exec(compile(script.replace("display(x)", "y = x"), "script", "exec"), space)
    assert space["y"] == 2
    assert script.startswith("from IPython.display import display\n")
