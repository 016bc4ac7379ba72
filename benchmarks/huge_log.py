"""Explains a 1 GB log of eight ranks with a thousand tracebacks, beside `grep -c Traceback` on the same file.

    python benchmarks/huge_log.py [--size-mb 1024] [--tracebacks 1000]

Prints seconds, ratios to grep, and peak memory of `gradfix explain --no-probe` with and without `--tracebacks-only`.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time

MESSAGES = (
    "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: "
    "[torch.cuda.FloatTensor [{n}, {n}]], which is output 0 of TBackward, is at version {k}; expected version 1 instead.",
    "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied ({n}x{k} and {k}7x{n})",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n}.00 MiB. GPU {k} has a total capacity of 79.15 GiB",
    "ValueError: Expected input batch_size ({n}) to match target batch_size ({k}).",
    "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors after they have "
    "already been freed).",
    "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1{n}, unhandled system error, NCCL version 2.{k}",
    "KeyError: 'labels_{n}'",
)


def traceback_lines(rng: random.Random, number: int) -> list[str]:
    lines = ["Traceback (most recent call last):"]
    for depth in range(rng.randrange(20, 60)):
        lines.append(
            f'  File "/home/user/project/module_{number % 40}_{depth % 9}.py", line {depth * 7 + 3}, in step_{depth}'
        )
        lines.append(f"    return self.layer_{depth}(hidden_states, attention_mask=attention_mask, position={depth})")
        lines.append("           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^")
    lines.append(MESSAGES[number % len(MESSAGES)].format(n=rng.randrange(100, 999), k=rng.randrange(2, 9)))
    return lines


def metric_line(rng: random.Random, step: int, rank: int) -> str:
    loss = f"{2.5 - 1.5 * (step % 100000) / 100000 + rng.random() / 10:.4f}"
    if step % 3:
        return f"[rank{rank}]: {{'loss': {loss}, 'grad_norm': {rng.random():.4f}, 'learning_rate': 2e-05, 'epoch': 0.{step}}}"
    return f"[rank{rank}]: 2026-05-01 12:{step % 60:02d}:11,123 INFO trainer: step {step} loss {loss} tokens/s {rng.randrange(9000)}"


def write_log(path: str, size: int, tracebacks: int) -> None:
    rng = random.Random(0)
    block = "\n".join(metric_line(rng, step, step % 8) for step in range(20_000)) + "\n"
    gap = max(size // tracebacks, 4096)
    with open(path, "w") as file:
        for number in range(tracebacks):
            start = rng.randrange(0, max(len(block) - 4096, 1))
            left = gap
            while left > 0:
                piece = block[start : start + left]
                piece = piece[: piece.rfind("\n") + 1] or "\n"
                file.write(piece)
                left -= len(piece)
                start = 0
                if left < 4096:
                    break
            rank = number % 8
            file.writelines(f"[rank{rank}]: {line}\n" for line in traceback_lines(rng, number))


def timed(command: list[str], path: str) -> tuple[float, int, str]:
    """Seconds, peak KiB of the command's own memory, output."""
    start = time.perf_counter()
    with open(path, "rb") as stdin:
        child = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE)
        out = child.stdout.read() if child.stdout else b""
        _, _, usage = os.wait4(child.pid, 0)
    return time.perf_counter() - start, usage.ru_maxrss, out.decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size-mb", type=int, default=1024)
    parser.add_argument("--tracebacks", type=int, default=1000)
    options = parser.parse_args()
    gradfix = [sys.executable, "-m", "gradfix", "explain", "--no-probe", "--format", "json"]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "train.log")
        write_log(path, options.size_mb << 20, options.tracebacks)
        print(f"log: {os.path.getsize(path) / 2**30:.2f} GiB, {options.tracebacks} tracebacks, 8 ranks")
        timed(["grep", "-c", "Traceback"], path)
        base = min(timed(["grep", "-c", "Traceback"], path)[0] for _ in range(3))
        print(f"grep -c Traceback          {base:6.2f} s")
        for name, extra in (("everything", []), ("--tracebacks-only", ["--tracebacks-only"])):
            seconds, peak, out = min((timed([*gradfix, *extra, "-"], path) for _ in range(2)), key=lambda run: run[0])
            reports = out.count("\n")
            print(
                f"gradfix {name:<18} {seconds:6.2f} s  {seconds / base:5.1f} times grep  {peak / 1024:5.0f} MB  {reports} reports"
            )


if __name__ == "__main__":
    main()
