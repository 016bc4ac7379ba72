"""A verification as text: the verdict, why, the price, and the gradients of each step and module as a picture."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.model.verification import (
    CHECKPOINT,
    COMPILE,
    GREEN,
    MEANT,
    RED,
    SAME,
    TWIN,
    Comparison,
    ProcessReport,
    StepRow,
    Verification,
)
from explainer.render.module import module_table
from explainer.render.visible import one_line

_BARS = "▁▂▃▄▅▆▇█"
_COLOURS = {GREEN: "1;32", RED: "1;31"}
_OTHERS = {TWIN: "without checkpointing and compilation", MEANT: "of the values before the edit"}
_USES = {CHECKPOINT: "activation checkpointing", COMPILE: "torch.compile"}


@dataclass(frozen=True, slots=True)
class _Paint:
    """Whether to colour, and how wide the text may be."""

    is_coloured: bool
    width: int

    def __call__(self, text: str, code: str) -> str:  # an empty code is no colour
        return f"\x1b[{code}m{text}\x1b[0m" if self.is_coloured and code else text


def render_verification(proof: Verification, *, is_coloured: bool, width: int = 100) -> str:
    """The verdict first, then the comparison, then each process that trained, a line an optimizer."""
    paint = _Paint(is_coloured, width)
    lines = ["", f"{paint(proof.verdict, _COLOURS.get(proof.verdict, '1;33'))}  after {proof.seconds:.1f} s"]
    lines += [f"  {one_line(reason, 400)}" for reason in proof.reasons]
    lines += [f"  note: {one_line(note, 400)}" for note in proof.notes]
    if proof.comparison is not None:
        lines += _comparison(proof.comparison, paint)
    for process in proof.processes:
        lines += _process(process, paint, is_alone=sum(1 for one in proof.processes if one.steps or one.losses) < 2)
    return "\n".join(lines) + "\n"


def _comparison(done: Comparison, paint: _Paint) -> Iterator[str]:
    """How the first step compares, parameter by parameter where it differs, and what the change costs."""
    other = _OTHERS.get(done.against, "in the report")
    if done.verdict == SAME:
        yield f"  first step  the {done.compared} gradients are those {other} (within {done.tolerance:g} of their size)"
    for one in done.worst:
        rank = f"rank {one.rank}: " if one.rank is not None else ""
        apart = f"{one.error:.2g}" if math.isfinite(one.error) else "all"
        said = f"    {rank}{one.name}  off by {apart} of its size; norm {one.norm:.4g}, {one.norm_meant:.4g} {other}"
        yield paint(one_line(said, 400), "31")
    if done.differing > len(done.worst):
        yield f"    and {done.differing - len(done.worst)} more"
    price = []
    if done.memory[0] and done.memory[1]:
        price.append(f"memory {done.memory[1] / done.memory[0]:.2f} times")
    if done.step_seconds[0] and done.step_seconds[1] and done.against not in _OTHERS:
        price.append(f"a step {done.step_seconds[1] / done.step_seconds[0]:.2f} times")
    if price:
        yield f"  price       {', '.join(price)} what it is {other}"


def _process(process: ProcessReport, paint: _Paint, *, is_alone: bool) -> Iterator[str]:
    if not (process.rows or process.losses):
        return
    if not is_alone:
        yield f"rank {process.rank}" if process.rank is not None else f"process {process.pid}"
    if process.losses:
        yield f"  loss        {_picture(process.losses)}  {_numbers(process.losses)}"
    by_optimizer: dict[str, list[StepRow]] = defaultdict(list)
    for row in process.rows:
        by_optimizer[row.optimizer].append(row)
    for optimizer, rows in by_optimizer.items():
        norms = [row.norm if row.norm is not None else float("nan") for row in rows]
        last = rows[-1]
        yield f"  gradients   {_picture(norms)}  {_numbers(norms)}  norm before each step of {optimizer.partition(' ')[2]}"
        zero = f", {last.zero} of these zero" if last.zero else ""
        yield f"              {last.given} of {last.parameters} parameters with a gradient{zero}, {len(rows)} steps"
    yield from _circumstances(process)
    yield from module_table(process.modules, width=paint.width, paint=paint)


def _circumstances(process: ProcessReport) -> Iterator[str]:
    """Precision, device and its memory, time."""
    if process.dtypes:
        cast = f"autocast {', '.join(process.autocast)}" if process.autocast else "no autocast"
        uses = "".join(f"; {_USES[one]}" for one in process.uses if one in _USES)
        yield f"  precision   {', '.join(process.dtypes)} parameters; {cast}{uses}"
    machine = process.machine
    if machine is not None:
        of = "" if machine.memory_of == "device" else " of the process"
        peak = f"; peak memory{of} {_bytes(machine.memory)}" if machine.memory is not None else ""
        bf16 = "" if machine.bf16 is None else f"; bfloat16 {'works' if machine.bf16 else 'fails'}"
        yield f"  device      {machine.device} ({one_line(machine.name, 80)}){bf16}{peak}"
    if process.step_seconds is not None:
        yield f"  time        {process.step_seconds:.3f} s a step"


def _bytes(count: int) -> str:
    return f"{count / (1 << 30):.2f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.0f} MiB"


def _picture(values: Sequence[float]) -> str:
    """Bars from the least to the greatest; a cross for what is not finite."""
    shown = list(values)[:40]
    finite = [value for value in shown if abs(value) < float("inf")]
    if not finite:
        return "×" * len(shown)
    low, high = min(finite), max(finite)
    width = (high - low) or 1.0
    return "".join(
        _BARS[round((value - low) / width * (len(_BARS) - 1))] if abs(value) < float("inf") else "×" for value in shown
    )


def _numbers(values: Sequence[float]) -> str:
    shown = [f"{value:.4g}" for value in values]
    return " ".join(shown) if len(shown) <= 4 else f"{shown[0]} … {shown[-1]}"
