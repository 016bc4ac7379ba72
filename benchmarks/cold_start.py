"""Cold start of `gradfix explain --no-probe` on 10 KB tracebacks, beside `python -c pass` and `import torch`.

    python benchmarks/cold_start.py [--runs 40]

A different traceback each time, a new process each time, the three programs in turn, medians.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import time

from huge_log import MESSAGES


def make_log(seed: int) -> bytes:
    """A traceback of about 10 KB that is like no other."""
    rng = random.Random(seed)
    lines = ["Traceback (most recent call last):"]
    size = 0
    while size < 9_600:
        number = rng.randrange(10**6)
        lines.append(
            f'  File "/home/u{seed}/env/lib/python3.11/site-packages/pkg{number % 9}/mod_{number}.py", line {number % 997}, in f{number}'
        )
        lines.append(f"    return self.layer_{number}(hidden_states, attention_mask=mask_{seed})")
        size += len(lines[-1]) + len(lines[-2]) + 2
    lines.append(f'  File "/home/u{seed}/train.py", line {seed + 3}, in <module>')
    lines.append("    loss.backward()")
    lines.append(MESSAGES[seed % len(MESSAGES)].format(n=rng.randrange(100, 999), k=rng.randrange(2, 9)))
    return ("\n".join(lines) + "\n").encode()


def seconds(command: list[str], data: bytes = b"") -> float:
    start = time.perf_counter()
    subprocess.run(command, input=data, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    options = parser.parse_args()
    gradfix = [f"{sys.prefix}/bin/gradfix", "explain"]
    torch = [sys.executable, "-c", "import torch"]
    has_torch = subprocess.run(torch, stderr=subprocess.DEVNULL).returncode == 0
    times: dict[str, list[float]] = {"pass": [], "explain --no-probe": [], "explain": [], "import torch": []}
    for run in range(options.runs + 2):
        row = {
            "pass": seconds([sys.executable, "-c", "pass"]),
            "explain --no-probe": seconds([*gradfix, "--no-probe"], make_log(run)),
            "explain": seconds(gradfix, make_log(run + 10_000)),
            **({"import torch": seconds(torch)} if has_torch and run % 8 == 0 else {}),
        }
        if run >= 2:
            for name, value in row.items():
                times[name].append(value)
    base = statistics.median(times["pass"])
    for name, values in times.items():
        if values:
            middle = statistics.median(values)
            print(f"{name:<20} {middle * 1000:7.1f} ms   {middle / base:5.1f} times `python -c pass`")
    if times["import torch"]:
        share = statistics.median(times["explain --no-probe"]) / statistics.median(times["import torch"])
        print(f"explain --no-probe takes {share:.3f} of `import torch`")


if __name__ == "__main__":
    main()
