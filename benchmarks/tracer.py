"""Step time of a small transformer under the tracer, beside the plain step and anomaly mode, interleaved in one process.

python benchmarks/tracer.py [--rounds 15] [--device cpu|cuda] [--write FILE]
"""

from __future__ import annotations

import argparse
import pathlib
import platform
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from transformers import GPT2Config, GPT2LMHeadModel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import gradfix

SIZES = {"d=128, 6 layers, 8 x 64 tokens": (128, 8, 64), "d=256, 6 layers, 8 x 128 tokens": (256, 8, 128)}
STEPS = 3
MODES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "plain": nullcontext,
    "traced: writes and cuts": lambda: gradfix.trace(finite=False),
    "traced, with finiteness": lambda: gradfix.trace(finite=True),
    "anomaly mode": lambda: torch.autograd.detect_anomaly(check_nan=False),
    "anomaly mode with NaN check": lambda: torch.autograd.detect_anomaly(check_nan=True),
}
BUDGETS = {"traced: writes and cuts": 1.25, "traced, with finiteness": 1.4}


def program(width: int, batch: int, length: int, device: str) -> Callable[[], float]:
    """A training step of a transformers model built from its configuration; returns the loss."""
    torch.manual_seed(0)
    config = GPT2Config(n_embd=width, n_layer=6, n_head=4, n_positions=length, vocab_size=1000)
    model = GPT2LMHeadModel(config).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, 1000, (batch, length), device=device)

    def step() -> float:
        loss = model(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def measure(size: tuple[int, int, int], rounds: int, device: str) -> tuple[dict[str, float], dict[str, float]]:
    """Median seconds of a step in each mode, and the median of its ratio to the plain step of the same round."""
    step = program(*size, device)
    for _ in range(3):
        step()
    seconds: dict[str, list[float]] = {name: [] for name in MODES}
    for number in range(rounds):
        for name in sorted(MODES, key=lambda one: hash((one, number))):  # an order of its own in each round
            with MODES[name]():
                begun = time.perf_counter()
                for _ in range(STEPS):
                    step()
                if device != "cpu":
                    torch.cuda.synchronize()
                seconds[name].append((time.perf_counter() - begun) / STEPS)
    ratios = {
        name: statistics.median(one / plain for one, plain in zip(spent, seconds["plain"], strict=True))
        for name, spent in seconds.items()
    }
    return {name: statistics.median(one) for name, one in seconds.items()}, ratios


def same_losses(size: tuple[int, int, int], device: str) -> bool:
    """Whether the losses of five steps are the same, bit for bit, traced and not."""
    plain = program(*size, device)
    expected = [plain() for _ in range(5)]
    traced = program(*size, device)
    with gradfix.trace():
        return expected == [traced() for _ in range(5)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--write")
    options = parser.parse_args()
    torch.set_num_threads(1 if options.device == "cpu" else torch.get_num_threads())
    name = torch.cuda.get_device_name() if options.device != "cpu" else f"{platform.machine()} CPU, 1 thread"
    lines = [
        f"torch {torch.__version__}, Python {platform.python_version()}, {name}, median of {options.rounds} rounds",
        "",
    ]
    is_good = True
    for title, size in SIZES.items():
        spent, ratios = measure(size, options.rounds, options.device)
        lines += [f"| {title} | ms a step | times plain | budget |", "| --- | --- | --- | --- |"]
        for mode in MODES:
            budget = BUDGETS.get(mode)
            lines.append(f"| {mode} | {1000 * spent[mode]:.1f} | {ratios[mode]:.2f} | {budget or ''} |")
        cheaper = ratios["traced, with finiteness"] < ratios["anomaly mode with NaN check"]
        equal = same_losses(size, options.device)
        lines += [
            "",
            f"cheaper than anomaly mode with its NaN check: {cheaper}; losses bit for bit the same: {equal}",
            "",
        ]
        is_good &= cheaper and equal and all(ratios[mode] <= budget for mode, budget in BUDGETS.items())
    text = "\n".join(lines)
    print(text)
    if options.write:
        pathlib.Path(options.write).write_text("# The tracer\n\n" + text)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
