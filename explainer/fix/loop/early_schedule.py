"""The calls that step a schedule before its optimizer, as torch's warning names them."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from explainer.model.incident import Incident
from explainer.source.loop.step import OPTIMIZER_STEP, SCHEDULER_STEP, Act, find_acts
from explainer.source.program import Program

LATER = "every step of the optimizer uses the learning rate before: the first of the schedule as well"
_WARNED = "Detected call of `lr_scheduler.step()` before `optimizer.step()`"


def warned_steps(incident: Incident, program: Program) -> Iterator[Act]:
    """The calls that the warning names: those at its line; the only one of the program where its place is torch's own."""
    warnings = [one for one in incident.warnings if _WARNED in one.message]
    acts = [one for one in find_acts(program) if one.kind in (SCHEDULER_STEP, OPTIMIZER_STEP)] if warnings else []
    own = [one for one in acts if one.kind == SCHEDULER_STEP and isinstance(one.statement, ast.Expr)]
    for warning in warnings:
        name = os.path.basename((warning.file or "").replace("\\", "/"))
        at = [
            one
            for one in acts
            if os.path.basename(one.file.path) == name and one.call.lineno == warning.line and not warning.library
        ]
        yield from at or (own if len(own) == 1 and (warning.library or not name) else ())
