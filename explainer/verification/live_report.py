"""The folder that processes of a run write their reports into, and what stands in them."""

from __future__ import annotations

import json
import os
from typing import Any

from explainer.model.verification import Failure, ParameterHealth, ProcessReport, StepRow

SITE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "live", "site")
VARIABLE = "GRADFIX_LIVE"


def live_environment(options: dict[str, Any], base: dict[str, str]) -> dict[str, str]:
    """The environment in which every Python process of a command loads `live/` with these options."""
    path = base.get("PYTHONPATH")
    return {**base, VARIABLE: json.dumps(options), "PYTHONPATH": os.pathsep.join([SITE, *([path] if path else [])])}


def read_reports(folder: str) -> tuple[ProcessReport, ...]:
    """The reports in a folder, by process number; one that is cut or is none is left out."""
    found = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".json"):
            try:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found.append(_report(json.load(file)))
            except (OSError, ValueError, KeyError, TypeError):
                continue
    return tuple(sorted(found, key=lambda one: one.pid))


def _report(raw: dict[str, Any]) -> ProcessReport:
    return ProcessReport(
        pid=raw["pid"],
        rank=raw.get("rank"),
        is_stopped=bool(raw.get("stopped")),
        steps=tuple(raw.get("steps", {}).items()),
        rows=tuple(
            StepRow(**{key: row[key] for key in ("optimizer", "step", "parameters", "given", "zero", "norm")})
            for row in raw.get("rows", ())
        ),
        losses=tuple(float(one) for one in raw.get("losses", ())),
        parameters=tuple(
            ParameterHealth(name=name, **{**one, "shape": tuple(one["shape"])})
            for name, one in raw.get("parameters", {}).items()
        ),
        failures=tuple(
            Failure(
                type=one["type"],
                message=one["message"],
                where=one["where"],
                text=one.get("text", ""),
                steps=tuple(one["steps"].items()),
            )
            for one in raw.get("failures", ())
        ),
        step_seconds=raw.get("step_seconds"),
    )
