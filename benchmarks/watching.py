"""Step time inside of `gradfix.watch()` against the plain step; budget 1.02 on a small transformer.

    python benchmarks/watching.py [--rounds 5] [--steps 400] [--device cuda]

Measured in one process: the hooks are taken off and put back before each step, so that a watched step and a plain one stand
beside each other. The ratio of a step is that of the medians; that of all steps holds what happens seldom too: the flag
of each tenth step and the looks, but for the first three, which with the search for the parameters' names are given as
milliseconds once. Needs torch.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUDGET = 1.02
PROGRAM = """
import json, statistics, sys, time
import torch
from torch import nn
from torch.optim import optimizer as hooks
import gradfix

width, layers, batch, length, steps = map(int, sys.argv[1:6])
device = sys.argv[6]
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
model = nn.Sequential(nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), nn.Linear(width, width)).to(device)
x = torch.randn(batch, length, width, device=device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
wait = torch.cuda.synchronize if device == "cuda" else lambda: None
registries = hooks._global_optimizer_pre_hooks, hooks._global_optimizer_post_hooks
with gradfix.watch(on_silent="stop") as seen:
    held, noting = [dict(one) for one in registries], torch.autograd.backward
    assert all(held) and hasattr(noting, "__wrapped__"), "gradfix is not here"
    wall, cpu = {0: [], 1: []}, {0: [], 1: []}
    for step in range(2 * steps):
        on = step % 2
        for registry, given in zip(registries, held):
            registry.clear()
            registry.update(given if on else {})
        torch.autograd.backward = noting if on else noting.__wrapped__
        at, used = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        wait()
        cpu[on].append(time.process_time() - used)
        wall[on].append(time.perf_counter() - at)
    for registry, given in zip(registries, held):
        registry.clear()
        registry.update(given)
    torch.autograd.backward = noting
middle = {on: statistics.median(wall[on][3:]) for on in (0, 1)}
once = sum(wall[1][:3]) - 3 * middle[0]
print(json.dumps([middle[0], middle[1] / middle[0], statistics.median(cpu[1][3:]) / statistics.median(cpu[0][3:]),
                  sum(cpu[1][3:]) / sum(cpu[0][3:]), once]))
"""
SIZES = {
    "transformer, width 128, 6 layers, batch 8 x 64": (128, 6, 8, 64),
    "transformer, width 256, 4 layers, batch 8 x 128": (256, 4, 8, 128),
}


def measure(size: tuple[int, ...], steps: int, device: str) -> list[float]:
    """The plain step, the ratios of wall and CPU time of a step, of the CPU time of all steps, and what the start costs."""
    command = [sys.executable, "-c", PROGRAM, *map(str, size), str(steps), device]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return json.loads(subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout)


def main() -> int:
    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    name = torch.cuda.get_device_name() if options.device == "cuda" else "no GPU, one thread"
    print(
        f"CPython {platform.python_version()}, torch {torch.__version__}, {name}; {options.rounds} rounds of "
        f"{options.steps} steps each way. Load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n"
    )
    print("| program | plain step | wall | CPU | CPU of all steps | once |\n" + "| --- " * 6 + "|")
    worst = 0.0
    for name, size in SIZES.items():
        rounds = [measure(size, options.steps, options.device) for _ in range(options.rounds)]
        step, wall, cpu, every, once = (statistics.median(one[at] for one in rounds) for at in range(5))
        print(
            f"| {name} | {step * 1e3:.2f} ms | {wall:.3f} | {cpu:.3f} | {every:.3f} | {once * 1e3:+.0f} ms |",
            flush=True,
        )
        worst = max(worst, every)
    print(f"\nbudget {BUDGET} for all steps: {'kept' if worst <= BUDGET else 'broken'} ({worst:.4f})")
    return int(worst > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
