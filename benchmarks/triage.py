"""Triages generated logs: throughput beside grep, two workers against one, equal rows, kills, and a long stream.

    python benchmarks/triage.py [--logs 10000] [--ray] [--stream-gb 2]

The logs are the printed samples of the rule base with the dirt of real ones (`tests/fleet/logs.py`). Half way one worker is
killed with SIGKILL, and another run is interrupted and resumed: rows must be those of a run in peace. The stream is made on
the fly, through pipes, and is never on disk.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from explainer.fleet.row import to_object  # noqa: E402
from explainer.fleet.triage import Listener, Outcome, Request, triage  # noqa: E402


class Digest(Listener):
    """The rows as one number, the peak memory of the workers, and an event when so many objects are done."""

    def __init__(self, at: int = 0, event=lambda: None) -> None:
        self.digest, self.rows, self.done, self.peak = hashlib.sha256(), 0, 0, 0
        self._at, self._event = at, event

    def advance(self, source, reading) -> None:
        self.done += 1
        if self.done == self._at:
            self._event()
        if self.done % 500 == 0 or self.done < 3:
            self.peak = max([self.peak, *(peak_of(child.pid) for child in multiprocessing.active_children())])

    def row(self, row) -> None:
        self.rows += 1
        self.digest.update(json.dumps(to_object(row)).encode())


def peak_of(pid: int | None) -> int:
    """The largest resident size so far, in MB."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(text.partition("VmHWM:")[2].split()[0]) // 1024 if "VmHWM" in text else 0


def timed(listener: Digest, *words: str, **options) -> tuple[float, Outcome]:
    start = time.perf_counter()
    outcome = triage(Request(words=words, **options), listener)
    return time.perf_counter() - start, outcome


def kill_a_worker() -> None:
    os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)


def write_plain_logs(folder: str, count: int) -> int:
    from tests.fleet.logs import make_log

    size = 0
    for number in range(count):
        place = os.path.join(folder, f"job-{number // 8:06d}")
        os.makedirs(place, exist_ok=True)
        data = make_log(number).encode()
        size += len(data)
        with open(os.path.join(place, f"rank{number % 8}.log"), "wb") as file:
            file.write(data)
    return size


def measure_logs(count: int, *, with_ray: bool) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, "logs")
        size = write_plain_logs(folder, count) / 1e6
        print(f"{count} logs, {size:.1f} MB; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        start = time.perf_counter()
        subprocess.run(["grep", "-rc", "Traceback", folder], stdout=subprocess.DEVNULL)
        grep = time.perf_counter() - start
        print(f"grep -rc Traceback       {grep:7.2f} s  {size / grep:7.1f} MB/s")
        one, before = Digest(), os.times()
        alone, _ = timed(one, folder, workers=1)
        core, ours = cpu_since(before)
        show("1 worker", alone, size, count, one)
        print(f"  CPU: {core:.1f} s in the worker ({count / core:.0f} logs/s a core), {ours:.1f} s in the parent")
        peace, before = Digest(), os.times()
        both, _ = timed(peace, folder, workers=2)
        show("2 workers", both, size, count, peace)
        cores, ours = cpu_since(before)
        print(f"  CPU: {cores:.1f} s in the workers, {ours:.1f} s in the parent")
        print(f"  {alone / both:.2f} times one worker; rows equal: {one.digest.digest() == peace.digest.digest()}")
        two = Digest(count // 2, kill_a_worker)
        seconds, _ = timed(two, folder, workers=2)
        show("2 workers, one killed", seconds, size, count, two)
        print(f"  rows equal: {one.digest.digest() == two.digest.digest()}")
        out = os.path.join(scratch, "out")
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where this was started in the background
        halt = Digest(count // 2, lambda: signal.raise_signal(signal.SIGINT))
        first, halted = timed(halt, folder, workers=2, out=out)
        rest = Digest()
        second, _ = timed(rest, folder, workers=2, out=out, resume=True)
        print(f"interrupted at {halted.done}, resumed: {first:.1f} + {second:.1f} s, {rest.done} read again or anew;"
              f" rows equal: {rest.digest.digest() == one.digest.digest()}")  # fmt: skip
        if with_ray:
            other = Digest()
            seconds, _ = timed(other, folder, workers=2, engine="ray")
            show("Ray, 2 processors", seconds, size, count, other)
            print(f"  rows equal: {other.digest.digest() == one.digest.digest()}")


def cpu_since(before: os.times_result) -> tuple[float, float]:
    """The processor seconds of the ended children and of this process."""
    now = os.times()
    children = now.children_user + now.children_system - before.children_user - before.children_system
    return children, now.user + now.system - before.user - before.system


def show(name: str, seconds: float, size: float, count: int, listener: Digest) -> None:
    print(f"{name:<24} {seconds:7.2f} s  {size / seconds:7.2f} MB/s  {count / seconds:6.0f} logs/s  {listener.rows} rows"
          f"  {listener.peak} MB a worker")  # fmt: skip


def feed(pipe: str, size: int) -> None:
    """Write a training log of eight ranks into a pipe, with a traceback in every 64 MB."""
    from huge_log import metric_line, traceback_lines

    rng = random.Random(0)
    block = ("\n".join(metric_line(rng, step, step % 8) for step in range(20_000)) + "\n").encode()
    written = number = 0
    with open(pipe, "wb", buffering=0) as file:
        while written < size:
            written += file.write(block)
            if written >= number * (64 << 20):
                file.write(("\n".join(f"[rank3]: {line}" for line in traceback_lines(rng, number)) + "\n").encode())
                number += 1


def measure_stream(size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pipes = [os.path.join(folder, f"{name}.log") for name in "ab"]
        feeders = []
        for pipe in pipes:
            os.mkfifo(pipe)
            feeders.append(threading.Thread(target=feed, args=(pipe, size // 2), daemon=True))
            feeders[-1].start()
        listener = Digest()
        seconds, outcome = timed(listener, *pipes, workers=2)
        print(f"stream: {size / 2**30:.1f} GiB in two pipes, {seconds:.1f} s, {size / 1e6 / seconds:.0f} MB/s,"
              f" {listener.rows} rows, {listener.peak} MB a worker at most, {peak_of(os.getpid())} MB in the parent")  # fmt: skip
        assert outcome.summary.is_all_read
        assert listener.peak < 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=10_000)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--stream-gb", type=float, default=2)
    options = parser.parse_args()
    if options.logs:
        measure_logs(options.logs, with_ray=options.ray)
    if options.stream_gb:
        measure_stream(int(options.stream_gb * 2**30))


if __name__ == "__main__":
    main()
