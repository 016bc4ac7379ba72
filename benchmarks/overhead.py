"""Step time under `gradfix run` against the plain program; budget 1.02 on a small transformer.

    python benchmarks/overhead.py [--rounds 9] [--steps 60] [--device cuda]

Measured in two ways, both by medians of wall time and of the process's CPU time:

- in one process, under `gradfix run`: its hooks are taken off and put back before each step, so that a step with them and
  one without stand beside each other, whatever else the machine does;
- in turns of two processes, one under `gradfix run` and one plain: what else the watching might cost is in it, and so is the
  noise of the machine. The first five steps, which are looked at more closely, are in "all steps" only.

Needs torch.
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
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUDGET = 1.02
PROGRAM = """
import json, statistics, sys, time
import torch
from torch import nn
from torch.optim import optimizer as hooks

width, layers, batch, length, steps, in_turns = map(int, sys.argv[1:7])
device = sys.argv[7]
wait = torch.cuda.synchronize if device == "cuda" else lambda: None
torch.manual_seed(0)
if layers:
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), nn.Linear(width, width))
    x = torch.randn(batch, length, width, device=device)
else:
    model, x = nn.Linear(width, 1), torch.randn(batch, width, device=device)
optimizer = torch.optim.AdamW(model.to(device).parameters(), lr=1e-4)

registries = hooks._global_optimizer_pre_hooks, hooks._global_optimizer_post_hooks
held, noting = [dict(one) for one in registries], torch.autograd.backward


def put(on):
    for registry, given in zip(registries, held):
        registry.clear()
        registry.update(given if on else {})
    torch.autograd.backward = noting if on else noting.__wrapped__


if in_turns:
    assert all(held), "gradfix is not here"
wall, cpu = {0: [], 1: []}, {0: [], 1: []}
for step in range(steps):
    on = step % 2 * in_turns
    if in_turns:
        put(on)
    at, used = time.perf_counter(), time.process_time()
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    wait()
    cpu[on].append(time.process_time() - used)
    wall[on].append(time.perf_counter() - at)
middle = {on: [statistics.median(wall[on][5:]), statistics.median(cpu[on][5:]), sum(cpu[on])] for on in range(1 + in_turns)}
print(json.dumps([middle[0], middle[in_turns]]))
"""
SIZES = {
    "transformer, width 128, 6 layers, batch 8 x 64": (128, 6, 8, 64, 1),
    "transformer, width 256, 4 layers, batch 8 x 128": (256, 4, 8, 128, 1),
    "one linear layer: the smallest step there is": (4, 0, 4, 1, 50),
}


def measure(
    path: str, size: tuple[int, ...], steps: int, device: str, *, watched: bool, in_turns: bool = False
) -> list[list[float]]:
    """The median wall and CPU times of steps without and with the hooks, and the CPU time of all steps, of one process."""
    *shape, times = size
    program = [sys.executable, path, *map(str, shape), str(steps * times), str(int(in_turns)), device]
    command = [sys.executable, "-m", "gradfix", "run", "--", *program] if watched else program
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    return json.loads(subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout)


def rows(path: str, name: str, size: tuple[int, ...], rounds: int, steps: int, device: str) -> float:
    """Print the two rows of a program; the ratio of CPU times within one process."""
    inside = [measure(path, size, 2 * steps, device, watched=True, in_turns=True) for _ in range(rounds)]
    outside = []
    for number in range(rounds):
        order = (False, True) if number % 2 else (True, False)
        seen = {watched: measure(path, size, steps, device, watched=watched)[0] for watched in order}
        outside.append([seen[False], seen[True]])
        print(f"{name}, round {number}: {outside[-1]}", file=sys.stderr, flush=True)
    ratio = 0.0
    for way, pairs in (("one process", inside), ("two processes", outside)):
        wall, cpu, every = (statistics.median(after[one] / before[one] for before, after in pairs) for one in range(3))
        step = statistics.median(before[1] for before, _ in pairs)
        more = statistics.median(after[1] - before[1] for before, after in pairs)
        print(
            f"| {name} | {way} | {step * 1e3:.2f} ms | {wall:.3f} | {cpu:.3f} | {every:.3f} | {more * 1e6:+.0f} us |",
            flush=True,
        )
        ratio = ratio or cpu
    return ratio


def main() -> int:
    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    gpu = torch.cuda.get_device_name() if options.device == "cuda" else "no GPU, one thread"
    print(
        f"CPython {platform.python_version()}, torch {torch.__version__}, {gpu}; {options.rounds} rounds of "
        f"{options.steps} steps each way. Load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n"
    )
    print(
        "| program | measured in | CPU of a step | wall | CPU | CPU of all steps | more a step |\n" + "| --- " * 7 + "|"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "train.py")
        pathlib.Path(path).write_text(PROGRAM)
        given = options.rounds, options.steps, options.device
        ratios = [(rows(path, name, size, *given), size) for name, size in SIZES.items()]
    worst = max(ratio for ratio, size in ratios if size[1])
    print(f"\nbudget {BUDGET} on the transformers: {'kept' if worst <= BUDGET else 'broken'} ({worst:.4f})")
    return int(worst > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
