"""What was done stays done: interrupted, killed, resumed."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from explainer.errors import UsageError
from tests.conftest import PATH, ROOT
from tests.fleet.conftest import COUNT
from tests.fleet.logs import make_log

SELF_KILLING = """
import os, signal, sys
from explainer.fleet import part
from explainer.fleet.triage import Listener, Request, triage
part.MAX_OBJECTS = 16
class Killing(Listener):
    done = 0
    def advance(self, source, rows):
        self.done += 1
        if self.done == 100:
            os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    triage(Request(words=(sys.argv[1],), out=sys.argv[2], workers=2), Killing())
"""


def stop_at(at: int):
    def stop(done: int) -> None:
        if done == at:
            signal.raise_signal(signal.SIGINT)

    return stop


def parquet_rows(folder: pathlib.Path) -> list[dict]:
    pyarrow = pytest.importorskip("pyarrow.parquet")
    return pyarrow.read_table(folder / "rows.parquet").to_pylist()


def test_interrupted_and_resumed(logs: pathlib.Path, expected, run_triage, tmp_path: pathlib.Path) -> None:
    """Ctrl-C keeps what is done; --resume reads the rest; the rows are those of a run in one go."""
    out = tmp_path / "out"
    first, _, _ = run_triage(logs, out=out, on_advance=stop_at(COUNT // 3))
    assert first.is_stopped
    assert COUNT // 3 <= first.done < COUNT
    assert not (out / "rows.parquet").exists()
    second, rows, read = run_triage(logs, out=out, resume=True)
    assert read == COUNT - first.done
    assert rows == expected
    assert [row["file"] for row in parquet_rows(out)] == [row.file for row in expected]
    assert second.done == COUNT


def test_killed_and_resumed(logs: pathlib.Path, expected, run_triage, tmp_path: pathlib.Path) -> None:
    """The whole program killed with SIGKILL loses at most the last part, and doubles nothing."""
    out, script = tmp_path / "out", tmp_path / "triage_and_die.py"
    script.write_text(SELF_KILLING)
    environment = {**os.environ, "PYTHONPATH": PATH}
    run = subprocess.run([sys.executable, script, logs, out], env=environment, capture_output=True)
    assert run.returncode == -signal.SIGKILL, run.stderr.decode()
    _, rows, read = run_triage(logs, out=out, resume=True)
    assert COUNT - 100 <= read <= COUNT - 96
    assert rows == expected


def test_ctrl_c_in_a_shell(tmp_path: pathlib.Path, run_triage) -> None:
    """`gradfix triage` ends at once with status 130, says how to go on, and that works."""
    folder, out = tmp_path / "logs", tmp_path / "out"
    folder.mkdir()
    for number in range(6):
        (folder / f"{number}.log").write_text(make_log(number))
    pipe = tmp_path / "waiting.log"  # after logs/ in the order: the others are done when it is opened
    os.mkfifo(pipe)
    words = [sys.executable, "-m", "gradfix", "triage", str(folder), str(pipe), "--out", str(out), "--workers", "1"]
    child = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    writer = _opened(pipe, child)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=20)
    os.close(writer)
    assert child.returncode == 130, said
    assert f"--out {out} --resume" in said
    assert "Traceback" not in said
    pipe.unlink()
    pipe.write_text(make_log(9))
    _, rows, read = run_triage(folder, pipe, out=out, resume=True)
    assert (read, len({row.file for row in rows})) == (1, 7)


def _opened(pipe: pathlib.Path, child: subprocess.Popen) -> int:
    """Waits until the program reads the pipe."""
    end = time.monotonic() + 60
    while time.monotonic() < end and child.poll() is None:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.02)
    raise AssertionError(f"the pipe was never read: {child.communicate()}")


def test_what_is_new_changed_or_unread_is_read_again(tmp_path: pathlib.Path, run_triage) -> None:
    """A nightly --resume reads new, changed and once unreadable objects alone; what has gone has no row."""
    folder, out = tmp_path / "logs", tmp_path / "out"
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.log").write_text(make_log(number))
    (folder / "4.log").write_bytes(b"\x7fELF" + bytes(100))
    _, rows, _ = run_triage(folder, out=out, workers=1)
    assert rows[-1].status == "unreadable"
    (folder / "0.log").unlink()
    (folder / "1.log").write_text(make_log(7))
    (folder / "5.log").write_text(make_log(5))
    _, rows, read = run_triage(folder, out=out, resume=True, workers=1)
    assert read == 3  # 1.log, 4.log, 5.log
    assert [os.path.basename(row.file) for row in rows] == ["1.log", "2.log", "3.log", "4.log", "5.log"]
    assert rows[0].exception in ("FluxCapacitorError", "ShardLedgerError", "QuotaOracleError")


def test_a_folder_is_not_written_over(tmp_path: pathlib.Path, run_triage) -> None:
    """An output folder that holds a triage is refused without --resume, or with other rules."""
    out = tmp_path / "out"
    run_triage(tmp_path / "none", out=out)
    with pytest.raises(UsageError, match="holds a triage; --resume goes on"):
        run_triage(tmp_path / "none", out=out)
    (out / "run.json").write_text('{"schema": "gradfix.triage/1", "rules": "others"}')
    with pytest.raises(UsageError, match="made with other rules"):
        run_triage(tmp_path / "none", out=out, resume=True)


def test_a_damaged_part_is_read_again(tmp_path: pathlib.Path, run_triage) -> None:
    """A line of a part that is no longer JSON counts as not done."""
    folder, out = tmp_path / "logs", tmp_path / "out"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.log").write_text(make_log(number))
    _, before, _ = run_triage(folder, out=out, workers=1)
    part = out / "parts" / "000000.ndjson"
    lines = part.read_bytes().split(b"\n")
    part.write_bytes(b"\n".join([lines[0][:-9], *lines[1:]]))
    _, rows, read = run_triage(folder, out=out, resume=True, workers=1)
    assert read == 1
    assert rows == before


def test_odd_names_survive(tmp_path: pathlib.Path, run_triage) -> None:
    """Names that are no UTF-8, hold line feeds or reorder text go through parts, Parquet and report."""
    folder, out = tmp_path / "logs", tmp_path / "out"
    folder.mkdir()
    for name in (b"bad\xff\xfe.log", b"new\nline.log", "emoji\U0001f600\u202e.log".encode(), b"quote'\"<b>.log"):
        with open(os.path.join(os.fsencode(folder), name), "w") as file:
            file.write(make_log(7))
    _, rows, _ = run_triage(folder, out=out, workers=1)
    assert [row["status"] for row in parquet_rows(out)] == ["unknown"] * 4
    assert "\u202e" not in (out / "report.html").read_text()
    _, again, read = run_triage(folder, out=out, resume=True, workers=1)
    assert (again, read) == (rows, 0)
