"""`with gradfix.trace():`: the program watched operation by operation, and the guilty line named as a fact."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from explainer.model.trace import TracedLine


@dataclass(slots=True)
class Trace:
    """What a traced block showed: filled when the block ends."""

    lines: tuple[TracedLine, ...] = field(default=())
    """Writes, cuts, values that are not finite: what a failure came from; without a failure, writes that autograd did not see."""


@contextmanager
def trace(*, finite: bool = True) -> Iterator[Trace]:
    """Trace what the block does with torch: in-place writes, cuts of the graph, and with `finite` the first NaN or infinity.

    An exception comes through as it is, with a note that names the line (on Python 3.11 and later); `gradfix.explain(error)`
    then knows what was traced. Threads that start inside the block are traced too; compiled functions must run eagerly
    (`TORCHDYNAMO_DISABLE=1`). A step costs up to 1.4 times as much. Blocks do not nest.

    Raises:
        ImportError: torch is not installed.

    Example:
        >>> import gradfix
        >>> with gradfix.trace() as seen:
        ...     train()
        >>> [(line.file, line.line, line.says) for line in seen.lines]
    """
    import torch

    from explainer.live import crash
    from explainer.live.trace.arm import arm
    from explainer.verification.live_report import TRACED
    from explainer.verification.traced_line import lines_of

    seen = Trace()
    tracer, undo = arm(torch, finite=finite, late=True)
    try:
        yield seen
    except Exception as error:
        told = crash.look(error, tracer).get("traced", {})
        seen.lines = lines_of(told)
        with suppress(AttributeError):  # an exception class with slots: its note will do
            setattr(error, TRACED, told)
        if seen.lines and sys.version_info >= (3, 11):
            first = seen.lines[0]
            error.add_note(f"gradfix: {first.file}:{first.line}: {first.says}")
        raise
    else:
        seen.lines = lines_of(tracer.explain(None, ""))
    finally:
        undo.close()
