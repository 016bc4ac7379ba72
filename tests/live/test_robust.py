"""Whatever happens to the program or to us: one clear line, and nothing is left behind."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from tests.conftest import PATH
from tests.live.test_noting import run

FAILING = "x = torch.ones(2, requires_grad=True)\n(x * 2).detach().sum().backward()\n"
LOOP = """
import torch
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(50):
    model(torch.randn(4, 3)).square().mean().backward()
    optimizer.step()
"""


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch):
    """A project; afterwards the folder for temporary files is looked at: nothing of ours may stand in it."""
    for name in ("project", "temporary", "state"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    yield tmp_path / "project"
    assert [one.name for one in (tmp_path / "temporary").iterdir() if one.name.startswith("gradfix-")] == []


def start(folder: pathlib.Path, *words: str, **options) -> subprocess.Popen[str]:
    """Start gradfix in a folder; its temporary files go to the one that is looked at."""
    return subprocess.Popen(
        [sys.executable, "-m", "gradfix", *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": PATH}, **options,
    )  # fmt: skip


def finish(*given, **options) -> tuple[int, str, str]:
    process = start(*given, **options)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def wait_for(path: pathlib.Path) -> int:
    """The number that a program writes into a file once it is up."""
    for _ in range(4800):
        if path.exists() and path.read_text().endswith("\n"):
            return int(path.read_text())
        time.sleep(0.05)
    raise AssertionError(f"{path} was never written")


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and is not yet collected does not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


UP = "import os, time\nopen('up.part', 'w').write(f'{os.getpid()}\\n')\nos.rename('up.part', 'up')\ntime.sleep(600)\n"
linux = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at /proc")


@linux
@pytest.mark.parametrize("command", ["run", "verify"])
@pytest.mark.parametrize("shell", [False, True], ids=["the program", "a shell around it"])
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)], ids=["SIGTERM", "SIGHUP"]
)
def test_a_signal_ends_the_program_too(folder, command: str, shell: bool, number: signal.Signals) -> None:
    """The program is ended with all that it started; the status is a shell's."""
    (folder / "train.py").write_text(UP)
    program = ["sh", "-c", f"{sys.executable} train.py; true"] if shell else [sys.executable, "train.py"]
    process = start(folder, command, "--", *program)
    pid = wait_for(folder / "up")
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert not is_alive(pid)
    assert "Traceback" not in out + err


@pytest.mark.slow
@linux
def test_a_program_that_ignores_sigterm_in_a_verification(folder) -> None:
    """SIGKILL follows."""
    (folder / "train.py").write_text("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + UP)
    process = start(folder, "verify", "--", sys.executable, "train.py")
    pid = wait_for(folder / "up")
    process.terminate()
    process.communicate(timeout=60)
    assert not is_alive(pid)


@pytest.mark.slow
def test_a_program_that_ends_well_on_sigterm(folder) -> None:
    """The signal is the program's: what it does with it counts, and nothing is said."""
    text = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: (print('saved'), sys.exit(0)))\n" + UP
    (folder / "train.py").write_text(text)
    process = start(folder, "run", "--", sys.executable, "train.py")
    wait_for(folder / "up")
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "saved\n", "")


def test_a_program_that_is_killed(folder) -> None:
    """One line names the signal and what sends it."""
    code = "import os; os.kill(os.getpid(), 9)"
    status, out, err = finish(folder, "run", "--no-probe", "--", sys.executable, "-c", code)
    assert (status, out) == (137, "")
    assert err.startswith("gradfix: the program was ended by SIGKILL: by the system where memory ran out")
    assert err.count("\n") == 1


@linux
def test_a_program_that_hangs(folder) -> None:
    """A verification ends it when time is up, with what it started, and is inconclusive."""
    program = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {UP!r}])\n"
    (folder / "train.py").write_text(program)
    status, out, _ = finish(folder, "verify", "--timeout", "4", "--allow-writes", "--", sys.executable, "train.py")
    assert status == 3
    assert "it ran out of time after" in out
    assert not is_alive(wait_for(folder / "up"))


@pytest.mark.slow
@linux
@pytest.mark.parametrize("ends", [True, False], ids=["that ends", "that hangs"])
def test_a_program_that_closes_its_streams(folder, ends: bool) -> None:
    """Its end is waited for all the same, and a limit of time holds."""
    (folder / "train.py").write_text(f"import os, time\nos.close(1)\nos.close(2)\ntime.sleep({1 if ends else 600})\n")
    status, out, _ = finish(folder, "verify", "--timeout", "4", "--", sys.executable, "train.py")
    assert status == 3
    assert ("no process that imports torch was seen" if ends else "it ran out of time") in out
    status, _, err = finish(folder, "run", "--", sys.executable, "-c", "import os, sys; os.close(1); sys.exit(5)")
    assert (status, err.count("\n")) == (5, 1)


MEASURED = """
import pathlib, sys
from explainer.cli.entry import main
status = main(sys.argv[1:])
print(next(one.split()[1] for one in pathlib.Path("/proc/self/status").open() if one.startswith("VmHWM")), file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.slow
@linux
def test_output_without_end(folder) -> None:
    """100 MB go through, and the memory that they take is bounded."""
    code = "import sys\nfor _ in range(100): sys.stdout.write(('x' * 99 + '\\n') * 10486)\nsys.exit(3)"
    command = [sys.executable, "-c", MEASURED, "run", "--no-probe", "--", sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": PATH}
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    )
    said, most = done.stderr.splitlines()
    assert done.returncode == 3
    assert said == "gradfix: the program ended with exit status 3, and nothing that it printed tells why"
    assert int(most) < 150 * 1024


@pytest.mark.slow
def test_a_line_without_end(folder) -> None:
    """So does one line of 40 MB."""
    code = "import sys\nfor _ in range(40): sys.stdout.write('x' * (1 << 20))\nsys.exit(3)"
    status, out, err = finish(folder, "run", "--no-probe", "--", sys.executable, "-c", code)
    assert (status, len(out)) == (3, 40 << 20)
    assert err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.torch
def test_processes_and_threads(folder, tmp_path) -> None:
    """Eight children, each with a thread that fails, and a fork: each failure is noted by the process that it befell."""
    pytest.importorskip("torch")
    body = "".join(f"    {line}\n" for line in FAILING.splitlines())
    text = f"""
import multiprocessing, os, sys, threading
import torch
def work():
{body}
def child():
    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=child) for _ in range(8)]
    for one in children:
        one.start()
    for one in children:
        one.join()
    sys.exit(6)
"""
    (folder / "train.py").write_text(text)
    done, _ = run(folder, "train.py")
    assert done.status == 6
    assert [len(one.failures) for one in done.processes if one.failures] == [1] * 8
    assert done.report is not None
    assert done.report.findings[0].cause.startswith("no-graph/")


@pytest.mark.slow
@pytest.mark.torch
def test_a_state_folder_that_cannot_be_written(folder, monkeypatch) -> None:
    """Without a journal no edit is made: one line says so, and the explanation stands."""
    pytest.importorskip("torch")
    from tests.verification.test_repair import BROKEN

    (folder / "taken").write_text("")
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(folder / "taken" / "state"))
    (folder / "train.py").write_text(BROKEN)
    status, _, err = finish(folder, "run", "--fix", "--no-probe", "--", sys.executable, "train.py")
    assert "Traceback" not in err.partition("modified by an inplace operation")[2]
    assert (status, (folder / "train.py").read_text()) == (1, BROKEN)
    assert "internal error" not in err
    last = err.splitlines()[-1]
    assert last.startswith("not repaired: ")
    assert "taken/state" in last


def test_an_interpreter_without_torch(folder) -> None:
    """The missing module is what is explained."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "v"], check=True)
    (folder / "train.py").write_text("import torch\n")
    status, _, err = finish(folder, "run", "--no-probe", "--", str(folder / "v" / "bin" / "python"), "train.py")
    assert status == 1
    assert "ModuleNotFoundError: No module named 'torch'" in err
    assert err.count("Traceback (most recent call last)") == 1


FLOAT_LABELS = """import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
labels = torch.tensor([0.0, 1.0, 1.0])
for _ in range(2):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(3, 4)), labels).backward()
    optimizer.step()
"""


@linux
@pytest.mark.torch
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)], ids=["Ctrl-C", "SIGTERM"]
)
def test_a_repair_that_is_broken_off(folder, number: signal.Signals) -> None:
    """While a fix is on trial: the trial is ended, and the files are as they were."""
    pytest.importorskip("torch")
    trial = "import json, os, time\noptions = json.loads(os.environ['GRADFIX_LIVE'])\n"
    trial += "if options['mode'] == 'verify' and not options['twin']:\n"
    # The edit lets the program come to its end, where it stays.
    text = (FLOAT_LABELS + trial + "".join(f"    {line}\n" for line in UP.splitlines())).replace(
        "'up", f"'{folder.parent}/up"
    )
    (folder / "train.py").write_text(text)
    process = start(folder, "run", "--fix", "--no-probe", "--", sys.executable, "train.py", start_new_session=True)
    pid = wait_for(folder.parent / "up")
    assert (folder / "train.py").read_text() != text
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert (folder / "train.py").read_text() == text
    assert not is_alive(pid)
