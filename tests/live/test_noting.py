"""`gradfix run` notes failures where they happen, whatever the program does with them, and changes nothing of its behaviour."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
from functools import partial

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.model.incident import TENSOR
from explainer.run import Job, sharpen
from tests import forked
from tests.conftest import PATH
from tests.gate import some_at_gate
from tests.live import running

pytestmark = pytest.mark.torch
FAIL = "import torch\nx = torch.ones(2, requires_grad=True)\n(x * 2).detach().sum().backward()\n"
CAUGHT = f"""
import sys, traceback
def main():
{"".join("    " + line + chr(10) for line in FAIL.splitlines())}
try:
    main()
except Exception:
    traceback.print_exc()
    sys.exit(1)
"""
THREAD = f"""
import threading, sys
def main():
{"".join("    " + line + chr(10) for line in FAIL.splitlines())}
worker = threading.Thread(target=main)
worker.start()
worker.join()
sys.exit(4)
"""
SPAWNED = f"""
import torch.multiprocessing as mp
def main(rank):
{"".join("    " + line + chr(10) for line in FAIL.splitlines())}
if __name__ == "__main__":
    mp.spawn(main, nprocs=1)
"""
LOGGED = f"""
import logging, sys
def main():
{"".join("    " + line + chr(10) for line in FAIL.splitlines())}
try:
    main()
except Exception:
    logging.exception("training failed")
    sys.exit(2)
"""
FORKED = f"""
import os, sys
child = os.fork()
if child == 0:
{"".join("    " + line + chr(10) for line in FAIL.splitlines())}
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
STEPPED = """
import torch
weight = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
(weight * 2).sum().backward()
optimizer.step()
(weight * 2).detach().sum().backward()
"""
OUTSIDE = "import torch\nlayer = torch.nn.Linear(3, 2)\nlayer.bias[1] = 0.5\n"
ONE_LINE = f"""
import logging, sys
def main():
{"".join("    " + line + chr(10) for line in OUTSIDE.splitlines())}
try:
    main()
except Exception as error:
    HANDLE
sys.exit(3)
"""
HANDLED = {
    "logged as a warning, in part": "import logging\n    logging.warning('left out: %s', str(error)[:20])",
    "logged": "logging.getLogger('job').error('the run failed: %s', error)",
    "told by the exit": "print(error); sys.exit(3)",
}
PROGRAMS = {
    "a plain script": (FAIL, 1),
    "caught, printed, exit": (CAUGHT, 1),
    "in a thread": (THREAD, 4),
    "in a spawned process": (SPAWNED, 1),
    "logged": (LOGGED, 2),
    "in a forked process": (FORKED, 1),
}


@pytest.fixture(autouse=True)
def _torch():
    pytest.importorskip("torch")


run = partial(running.run, python=sys.executable)  # what is looked at here begins with the interpreter


@pytest.mark.parametrize(
    ("text", "status"), some_at_gate(PROGRAMS, ["a plain script", "in a thread", "in a forked process"])
)
def test_the_failure_is_noted_and_explained(tmp_path: pathlib.Path, text: str, status: int) -> None:
    """The exit status is the program's own; the cause is found, with what the live objects said."""
    (tmp_path / "train.py").write_text(text)
    done, _ = run(tmp_path, "train.py")
    assert done.status == status
    assert done.report is not None
    assert done.report.findings[0].cause.startswith("no-graph/")
    noted = [failure for one in done.processes for failure in one.failures]
    assert any(dict(failure.facts).get("live_grad_enabled") == "yes" for failure in noted)


WORKER = """
import torch
class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        image, mean = torch.ones(3, 8, 8), torch.ones(3)
        return image - mean
if __name__ == "__main__":
    for batch in torch.utils.data.DataLoader(Images(), num_workers=1):
        print(batch.shape)
"""


def test_what_a_worker_of_a_loader_held(tmp_path: pathlib.Path) -> None:
    """The tensors are those of the frame that raised in the worker, and not those of the loop that waits for it."""
    (tmp_path / "train.py").write_text(WORKER)
    done, _ = run(tmp_path, "train.py")
    assert done.report is not None
    seen = [one.value for one in done.report.incident.facts if one.name == TENSOR]
    assert sorted(seen) == ["image: [3, 8, 8] float32 on cpu", "mean: [3] float32 on cpu"]
    assert done.report.findings[0].culprits[0].line == 8


@pytest.mark.parametrize("handle", HANDLED.values(), ids=HANDLED)
def test_an_exception_of_which_one_line_is_told(tmp_path: pathlib.Path, handle: str) -> None:
    """No traceback is printed, and it is no backward that raised: the line is known all the same."""
    (tmp_path / "train.py").write_text(ONE_LINE.replace("HANDLE", handle))
    done, printed = running.run(tmp_path, "train.py")
    assert (done.status, "Traceback" in printed) == (3, False)
    assert done.report is not None
    found = done.report.findings[0]
    assert found.cause == "inplace/view-of-leaf"
    assert [(pathlib.Path(one.file).name, one.line) for one in found.culprits][:1] == [("train.py", 6)]


def test_an_exception_of_which_one_line_is_printed(tmp_path: pathlib.Path) -> None:
    """The first run sees nothing of it but the line; the traced one sees the operation raise it."""
    (tmp_path / "train.py").write_text(ONE_LINE.replace("HANDLE", "print('the run failed:', error)"))
    done, _ = running.run(tmp_path, "train.py")
    assert done.report is not None
    assert not done.report.findings[0].culprits
    job = Job(command=(forked.python(), "train.py"), root=str(tmp_path), catalog=load_catalog())
    sharper = sharpen(job, done, lambda _: None)
    assert sharper.report is not None
    assert [one.line for one in sharper.report.findings[0].culprits][:1] == [6]


COUNTED = """import sys
import torch
from torch import nn
net = nn.Sequential(nn.Linear(6, 8), nn.Linear(9, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
failed = 0
for _ in range(3):
    try:
        loss = net(torch.randn(4, 6)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    except RuntimeError:
        failed += 1
print(failed, "batches were left out")
sys.exit(1)
"""


@pytest.mark.parametrize(
    "word", ["", 'print("epoch 0 loss", float("nan"))\n'], ids=["alone", "beside a loss of no batch"]
)
def test_exceptions_of_which_only_the_number_is_printed(tmp_path: pathlib.Path, word: str) -> None:
    """What operations raised again and again, in a program that made no step, is why it ended itself."""
    (tmp_path / "train.py").write_text(COUNTED.replace("print(failed", f"{word}print(failed"))
    done, _ = running.run(tmp_path, "train.py")
    assert done.report is None or all(one.confidence == "possible" for one in done.report.findings)
    job = Job(command=(forked.python(), "train.py"), root=str(tmp_path), catalog=load_catalog())
    sharper = sharpen(job, done, lambda _: None)
    assert sharper.report is not None
    found = sharper.report.findings[0]
    assert (found.cause, found.culprits[0].line) == ("shape/operand-mismatch", 4)


def test_an_error_that_is_logged_before_a_kill(tmp_path: pathlib.Path) -> None:
    """What was logged, and survived, is no reason of a signal."""
    text = ONE_LINE.replace("HANDLE", HANDLED["logged"].replace("%s', error", "it goes on'"))
    text = text.replace(
        "sys.exit(3)\n",
        "import os, signal\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\nos.kill(os.getpid(), signal.SIGTERM)\n",
    )
    (tmp_path / "train.py").write_text(text)
    done, _ = running.run(tmp_path, "train.py")
    assert done.status == 128 + signal.SIGTERM
    assert done.report is None or not done.report.findings


def test_an_error_that_is_logged_and_survived(tmp_path: pathlib.Path) -> None:
    """A program that goes on and ends well is looked at as if nothing had been logged."""
    text = ONE_LINE.replace("HANDLE", HANDLED["logged"]).replace("sys.exit(3)\n", "")
    stuck = "import torch\nw, lost = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)\n"
    stuck += "opt = torch.optim.SGD([lost], lr=0.1)\nfor _ in range(3):\n    w.sum().backward()\n    opt.step()\n"
    (tmp_path / "train.py").write_text(text + stuck)
    done, _ = running.run(tmp_path, "train.py")
    assert done.status == 0
    assert done.report is not None
    assert done.report.findings[0].cause.startswith("no-graph/")


@pytest.mark.slow
def test_a_library_that_asks_for_torch_first(tmp_path: pathlib.Path) -> None:
    """transformers asks whether torch is installed before anybody imports it; steps are counted all the same."""
    (tmp_path / "train.py").write_text("import importlib.util\nimportlib.util.find_spec('torch')\n" + STEPPED)
    done, _ = run(tmp_path, "train.py")
    assert [one.steps for one in done.processes] == [(("0 SGD", 1),)]


def test_as_a_module(tmp_path: pathlib.Path) -> None:
    """`python -m package.train` works like a script."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "__init__.py").write_text("")
    (tmp_path / "project" / "train.py").write_text(FAIL)
    done, _ = run(tmp_path, "-m", "project.train")
    assert done.report is not None
    assert any(one.failures for one in done.processes)


def test_under_pytest(tmp_path: pathlib.Path) -> None:
    """A failing test is explained."""
    (tmp_path / "test_train.py").write_text(
        "def test_train():\n" + "".join(f"    {line}\n" for line in FAIL.splitlines())
    )
    done, _ = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert done.status == 1
    assert done.report is not None
    assert done.report.findings


def test_a_hidden_sitecustomize_still_runs(tmp_path: pathlib.Path, monkeypatch) -> None:
    """The program's own `sitecustomize` is loaded as if ours were not there, and our folder is not on its path."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import os\nos.environ['OWN'] = 'yes'\n")
    code = "import os, sys; print(os.environ.get('OWN'), [p for p in sys.path if p.endswith('live/site')])"
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    done, output = run(tmp_path, "-c", code)
    assert (done.status, output.strip()) == (0, "yes []")


def test_without_torch_nothing_changes(tmp_path: pathlib.Path) -> None:
    """A program that never imports torch runs as it would, and its failure is explained from what it printed."""
    done, output = run(tmp_path, "-c", "print('hello'); raise ValueError('x')")
    assert done.status == 1
    assert output.startswith("hello\n")
    assert 'File "<string>", line 1' in output
    assert "gradfix" not in output


OUTPUT = "import sys; sys.stdout.write('out\\n'); sys.stdout.flush(); sys.stderr.write('err\\n'); sys.exit(7)"


def test_streams_and_status_pass_through(tmp_path: pathlib.Path) -> None:
    """What goes to standard output stays there, and so does standard error; the exit status is the program's."""
    done = subprocess.run(
        [sys.executable, "-m", "gradfix", "run", "--no-probe", "--", sys.executable, "-c", OUTPUT],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": PATH},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (7, "out\n")
    assert done.stderr.startswith("err\n")


def test_input_reaches_the_program(tmp_path: pathlib.Path) -> None:
    """Standard input is the program's."""
    done = subprocess.run(
        [sys.executable, "-m", "gradfix", "run", "--", sys.executable, "-c", "print(input()[::-1])"],
        input="abc\n", capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": PATH},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "cba\n")


@pytest.mark.parametrize(("number", "status"), [(9, 137), (15, 143)], ids=["killed", "terminated"])
def test_a_signal_is_told_as_a_shell_does(tmp_path: pathlib.Path, number: int, status: int) -> None:
    """A program that a signal ends has status 128 plus its number."""
    done, _ = run(tmp_path, "-c", f"import os; os.kill(os.getpid(), {number})")
    assert done.status == status


def test_no_such_program(tmp_path: pathlib.Path) -> None:
    """One line, and the status for wrong use."""
    done = subprocess.run(
        [sys.executable, "-m", "gradfix", "run", "--", "/no/such/program"],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": PATH},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "gradfix: /no/such/program: no such file or directory\n"


def test_json_of_a_passed_run(tmp_path: pathlib.Path) -> None:
    """The object that other programs rely on."""
    done = subprocess.run(
        [sys.executable, "-m", "gradfix", "run", "--format", "json", "--", sys.executable, "-c", "print(1)"],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": PATH},
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert (told["schema"], told["status"], told["report"]["findings"]) == ("gradfix.run/1", "passed", [])
    assert done.stderr == "1\n"
