"""Opening `gradfix ui` on a small log in a pseudo-terminal, beside `python -c "import textual"`.

    python benchmarks/interface.py [--runs 12]

Medians of new processes, the programs in turn: to the first paint (the tabs are drawn), to the explained finding, and the
memory at that moment.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import pty
import select
import signal
import statistics
import subprocess
import sys
import time

LOG = pathlib.Path(__file__).resolve().parent.parent / "examples" / "mini-omni-cache" / "train.log"


def open_interface() -> dict[str, float]:
    """Seconds to the first paint and to the finding, and the memory in MiB; the interface is ended afterwards."""
    start = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", TEXTUAL_ANIMATIONS="none")
        os.chdir(LOG.parent)
        os.execv(sys.executable, [sys.executable, "-m", "gradfix", "ui", "--no-probe", "train.log"])
    import fcntl
    import struct
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    seen, times = b"", {}
    for name, text in (("first paint", b"Environment"), ("finding", b"cache-updated-in-training")):
        while text not in seen:
            select.select([terminal], [], [], 30)
            seen += os.read(terminal, 1 << 16)
        times[name] = time.perf_counter() - start
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(terminal)
    return {**times, "memory": pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)}


def seconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=12)
    rows = []
    for run in range(parser.parse_args().runs + 2):
        row = {"pass": seconds("pass"), "import textual": seconds("import textual"), **open_interface()}
        if run >= 2:
            rows.append(row)
    middle = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
    base = middle["import textual"]
    for name in ("pass", "import textual", "first paint", "finding"):
        print(f"{name:<15} {middle[name] * 1000:7.0f} ms  {middle[name] / base:5.2f} times `import textual`")
    print(f"{'memory':<15} {middle['memory']:7.0f} MiB")


if __name__ == "__main__":
    main()
