"""In a real terminal: output passes through while it is read, and Ctrl-C ends the program, not the explanation."""

from __future__ import annotations

import os
import sys

import pytest

from tests.conftest import PATH

pexpect = pytest.importorskip("pexpect")

PROGRAM = """
import sys, time
for step in range(3):
    print(f"step {step}", flush=True)
    time.sleep(0.1)
END
"""
RAISE = "raise RuntimeError('grad can be implicitly created only for scalar outputs')"
WAIT = "print('waiting', flush=True)\ntime.sleep(60)"


def pipe(tmp_path, end: str, *words: str):
    """`python train.py 2>&1 | gradfix explain` in a pseudo-terminal."""
    (tmp_path / "train.py").write_text(PROGRAM.replace("END", end))
    command = f"{sys.executable} train.py 2>&1 | {sys.executable} -m gradfix explain --no-probe {' '.join(words)}; echo status=$?"
    variables = {**os.environ, "PYTHONPATH": PATH, "TERM": "xterm-256color", "NO_COLOR": ""}
    return pexpect.spawn(
        "bash", ["-c", command], cwd=tmp_path, env=variables, timeout=30, encoding="utf-8", dimensions=(40, 100)
    )


def test_output_passes_through(tmp_path) -> None:
    """The program's own lines come first, as they are written, then the card."""
    child = pipe(tmp_path, RAISE)
    child.expect("step 0")
    child.expect("step 2")
    child.expect("RuntimeError: grad can be implicitly")
    child.expect("backward/non-scalar-loss")
    child.expect("status=0")


def test_lines_come_while_the_program_runs(tmp_path) -> None:
    """A line is shown before the program has ended."""
    child = pipe(tmp_path, WAIT)
    child.expect("waiting", timeout=10)
    child.sendintr()
    child.expect("status=")


def test_interrupt_ends_the_program_and_is_explained(tmp_path) -> None:
    """Ctrl-C reaches the program; gradfix reads on to its end and still answers."""
    child = pipe(tmp_path, WAIT)
    child.expect("waiting")
    child.sendintr()
    child.expect("KeyboardInterrupt")
    child.expect("the cause is not known")
    child.expect("interrupted")
    child.expect("status=1")


def test_a_program_that_ignores_the_interrupt(tmp_path) -> None:
    """A second Ctrl-C ends the reading: what was read is explained."""
    ignoring = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{'try:'}\n    {RAISE}\nexcept RuntimeError:\n    import traceback; traceback.print_exc()\n{WAIT}"
    child = pipe(tmp_path, ignoring)
    child.expect("waiting")
    child.sendintr()
    # Two signals that are pending at once are one to the kernel: on a busy machine the second is sent again.
    for _ in range(6):
        child.expect(r"\^C")
        child.sendintr()
        if child.expect(["backward/non-scalar-loss", pexpect.TIMEOUT], timeout=5) == 0:
            break
    else:
        pytest.fail("the reading goes on after repeated interrupts")
    child.close(force=True)


def test_json_is_not_mixed_with_the_program(tmp_path) -> None:
    """With --format json the program's output goes to standard error."""
    child = pipe(tmp_path, RAISE, "--format", "json", "2> passed.txt")
    child.expect(r'\{"schema": "gradfix.report/1"')
    child.expect("status=0")
    assert "step 0" not in child.before


def test_colour_in_a_terminal(tmp_path) -> None:
    """A terminal gets colour, and the card fits its width."""
    child = pipe(tmp_path, RAISE)
    child.expect(r"\x1b\[1;32mcertain")
    child.expect("status=0")
