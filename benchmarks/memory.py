"""What the memory costs `gradfix explain`, and how it holds a full file: beside `python -c pass`.

    python benchmarks/memory.py [--runs 40]

The CPU time of everything that only the memory does (its modules, SQLite, recalling, noting), in a process of its own each
time, on tracebacks of 10 KB that are like no other; once into an empty memory, once into a full one of 5,000 events.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile

from cold_start import make_log

CODE = """
import sys, time
from explainer.cli.entry import main
from explainer.cli import explain
spent = [0.0]
def timed(act):
    def call(*given, **named):
        start = time.process_time()
        try:
            return act(*given, **named)
        finally:
            spent[0] += time.process_time() - start
    return call
start = time.process_time()
import explainer.memory as memory
import explainer.model.memory, explainer.render.memory
spent[0] += time.process_time() - start
memory.recall_failures, memory.note = timed(memory.recall_failures), timed(memory.note)
main(["explain", "--no-probe"])
sys.stderr.write(str(spent[0] * 1000))
"""


def memory_milliseconds(number: int, environment: dict[str, str]) -> float:
    run = subprocess.run(
        [sys.executable, "-c", CODE],
        input=make_log(number),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
    )
    return float(run.stderr)


def pass_milliseconds() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def fill() -> None:
    from explainer.model.event import FAILURE, Event
    from explainer.store.memory import note_events

    note_events(
        [
            Event(
                kind=FAILURE,
                time=float(n),
                project=f"p{n % 9}-1",
                way="run",
                fingerprint=f"g1-{n % 700}",
                digest=str(n),
                file="train.py",
            )
            for n in range(5000)
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    options = parser.parse_args()
    os.environ.pop("GRADFIX_NO_MEMORY", None)
    figures: dict[str, list[float]] = {"python -c pass": [], "memory, empty": [], "memory, full": []}
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as full:
        os.environ["GRADFIX_STATE_DIR"] = full
        fill()
        memory_milliseconds(0, {**os.environ})  # writes the bytecode
        for run in range(options.runs):
            figures["python -c pass"].append(pass_milliseconds())
            figures["memory, full"].append(memory_milliseconds(run, {**os.environ}))
            figures["memory, empty"].append(
                memory_milliseconds(run, {**os.environ, "GRADFIX_STATE_DIR": f"{empty}/{run}"})
            )
    base = statistics.median(figures["python -c pass"])
    for name, values in figures.items():
        middle = statistics.median(values)
        print(
            f"{name:<16} median {middle:5.1f} ms  least {min(values):5.1f} ms  {middle / base:4.2f} times `python -c pass`"
        )


if __name__ == "__main__":
    main()
