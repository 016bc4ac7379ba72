"""A verification as text: the verdict, why, and the gradients of each step as a picture."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from explainer.model.verification import GREEN, RED, ProcessReport, StepRow, Verification
from explainer.render.visible import one_line

_BARS = "▁▂▃▄▅▆▇█"
_COLOURS = {GREEN: "1;32", RED: "1;31"}


def render_verification(proof: Verification, *, is_coloured: bool) -> str:
    """The verdict first, then each process that trained, a line an optimizer."""
    code = _COLOURS.get(proof.verdict, "1;33")
    verdict = f"\x1b[{code}m{proof.verdict}\x1b[0m" if is_coloured else proof.verdict
    lines = ["", f"{verdict}  after {proof.seconds:.1f} s"]
    lines += [f"  {one_line(reason, 400)}" for reason in proof.reasons]
    lines += [f"  note: {one_line(note, 400)}" for note in proof.notes]
    for process in proof.processes:
        lines += _process(process, is_alone=sum(1 for one in proof.processes if one.steps or one.losses) < 2)
    return "\n".join(lines) + "\n"


def _process(process: ProcessReport, *, is_alone: bool) -> Iterator[str]:
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
    if process.step_seconds is not None:
        yield f"  time        {process.step_seconds:.3f} s a step"


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
