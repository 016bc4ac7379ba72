"""The folder that processes of a run write their reports into, and what stands in them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from explainer.model.incident import IDLE_OPTIMIZER, MODULE, RUN, TENSOR, Fact, Incident
from explainer.model.verification import (
    Dropped,
    EarlyClip,
    Failure,
    FirstStep,
    Gradient,
    Hooked,
    IdleAdapter,
    IdleSchedule,
    Machine,
    Misscaled,
    NarrowReduction,
    ParameterHealth,
    Place,
    ProcessReport,
    Refused,
    Renewed,
    Skipped,
    StepRow,
    Stuck,
    Unfrozen,
    Unloaded,
    Unowned,
    Unsynced,
)
from explainer.verification.module import modules_of
from explainer.verification.traced import with_trace

SITE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "live", "site")
VARIABLE = "GRADFIX_LIVE"
TRACED = "__gradfix_traced__"


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
                    found.append(report_of(json.load(file)))
            except (OSError, ValueError, KeyError, TypeError):
                continue
    return tuple(sorted(found, key=lambda one: one.pid))


def _unowned(raw: dict[str, Any]) -> Unowned:
    lists = {key: tuple(raw[key]) for key in ("names", "children", "whole")}
    return Unowned(**{**raw, **lists, "empty": tuple((number, kind) for number, kind in raw["empty"])})


def _idle_schedule(raw: dict[str, Any]) -> IdleSchedule:
    ways = {key: tuple(Place(**one) for one in raw[key]) for key in ("made_by", "stepping_by")}
    return IdleSchedule(**{**raw, **ways, "idle": Place(**raw["idle"])})


def _unsynced(raw: dict[str, Any]) -> Unsynced:
    return Unsynced(**{**raw, "names": tuple(raw["names"]), "sums": tuple(raw["sums"])})


def report_of(raw: dict[str, Any]) -> ProcessReport:
    """The report of a process, from the plain data that `live/` keeps."""
    parameters = tuple(
        ParameterHealth(name=name, **{**one, "shape": tuple(one["shape"])})
        for name, one in raw.get("parameters", {}).items()
    )
    return ProcessReport(
        pid=raw["pid"],
        rank=raw.get("rank"),
        is_stopped=bool(raw.get("stopped")),
        steps=tuple(raw.get("steps", {}).items()),
        rows=tuple(StepRow(**row) for row in raw.get("rows", ())),
        losses=tuple(float(one) for one in raw.get("losses", ())),
        left_out=tuple(raw.get("left_out", ())),
        parameters=parameters,
        modules=modules_of(parameters),
        first=tuple(_first(key, one) for key, one in raw.get("first", {}).items()),
        failures=tuple(_failures(raw.get("failures", ()))),
        step_seconds=raw.get("step_seconds"),
        not_finite=tuple(raw.get("not_finite", ())),
        last_loss=str(raw.get("last_loss", "")),
        nan_losses=int(raw.get("nan_losses", 0)),
        skipped=tuple(Skipped(**one) for one in raw.get("skipped", ())),
        unowned=tuple(_unowned(one) for one in raw.get("unowned", ())),
        early_clips=tuple(EarlyClip(**one) for one in raw.get("early_clips", ())),
        renewed=tuple(Renewed(**one) for one in raw.get("renewed", ())),
        misscaled=tuple(Misscaled(**one) for one in (*raw.get("misscaled", ()), *raw.get("unscaled", ()))),
        hooked=tuple(Hooked(**one) for one in raw.get("hooked", ())),
        dropped=tuple(Dropped(**one) for one in raw.get("dropped", ())),
        idle_adapters=tuple(IdleAdapter(**one) for one in raw.get("idle_adapters", ())),
        frozen_adapters=tuple(IdleAdapter(**one) for one in raw.get("frozen_adapters", ())),
        switched_adapters=tuple(IdleAdapter(**one) for one in raw.get("switched_adapters", ())),
        narrow_reductions=tuple(NarrowReduction(**one) for one in raw.get("narrow_reductions", ())),
        unfrozen=tuple(Unfrozen(**one) for one in raw.get("unfrozen", ())),
        unsynced=tuple(_unsynced(one) for one in raw.get("unsynced", ())),
        stuck=tuple(Stuck(**one) for one in raw.get("stuck", ())),
        idle_schedules=tuple(_idle_schedule(one) for one in raw.get("idle_schedules", ())),
        unloaded=tuple(Unloaded(**{**one, "others": tuple(one["others"])}) for one in raw.get("unloaded", ())),
        refused=tuple(Refused(**one) for one in raw.get("refused", ())),
        traced=raw.get("traced") or {},
        dtypes=tuple(raw.get("dtypes", ())),
        autocast=tuple(raw.get("autocast", ())),
        uses=tuple(raw.get("uses", ())),
        machine=Machine(**raw["machine"]) if "machine" in raw else None,
    )


# What was seen of the values in the frames, in words.
_TOLD = (
    "fractions", "scores", "target_beyond_one", "class_targets", "hot_rows", "leaked_target", "coarse", "refused_index", "refused_labels", "carried", "used_up", "frozen_optimizer", "exhausted", "nothing_summed", "unreduced", "frozen_since", "batch_key", "without_gradient", "bad_data",
    "bad_parameters", "all_finite", "renormalised", "shared_modules",
)  # fmt: skip


def _failures(noted: Iterable[dict[str, Any]]) -> Iterator[Failure]:
    """The failures of a process: of one that came again and again only the first ones were looked at, and say it for the others."""
    looked_at: dict[str, Failure] = {}
    for one in map(failure_of, noted):
        first = looked_at.setdefault(one.text, one) if one.facts else looked_at.get(one.text, one)
        yield one if one.facts else replace(one, facts=first.facts, traced=first.traced)


def failure_of(raw: dict[str, Any]) -> Failure:
    """A failure that a process noted, from the plain data that `live/` keeps."""
    return Failure(
        type=raw["type"],
        message=raw["message"],
        bases=tuple(raw.get("bases", ())),
        where=raw["where"],
        text=raw.get("text", ""),
        steps=tuple(raw["steps"].items()),
        facts=tuple(_facts(raw)),
        traced=(raw.get("seen") or {}).get("traced") or {},
    )


def _first(optimizer: str, raw: dict[str, Any]) -> FirstStep:
    return FirstStep(
        optimizer=optimizer,
        losses=tuple(raw["losses"]),
        gradients=tuple(_gradient(one) for one in raw["gradients"]),
    )


def _gradient(raw: dict[str, Any]) -> Gradient:
    lists = {key: tuple(raw.get(key, ())) for key in ("shape", "values", "projections")}
    return Gradient(**{**raw, **lists})


def _facts(failure: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What was noted of a failure, as names and values that rules can read."""
    seen = failure.get("seen") or {}
    if seen and "fault" not in seen:
        yield RUN, "yes"
        yield "live_steps", str(sum(failure["steps"].values()))
        yield from facts_of(seen)


def _of_steps(seen: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """How many steps the optimizers say that they made, and what was not finite where they had made none."""
    if "made_steps" in seen:
        yield "live_steps", str(seen["made_steps"])
        if seen.get("bad_parameters") and seen["made_steps"] == 0:
            yield "live_untouched_parameters", seen["bad_parameters"]


def facts_of(seen: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What `live.crash.look` saw, as names and values."""
    modules = seen.get("modules", {})
    yield from _of_steps(seen)
    yield "live_grad_enabled", "yes" if seen["grad_enabled"] else "no"
    if modules.get("parameters"):
        yield "live_parameters", str(modules["parameters"])
        yield from _trainable(modules)
    for key in ("evaluation", "replaced", "replaced_in_evaluation", "checkpointed", "reentrant", "merged"):
        if modules.get(key):
            yield f"live_{key}", ", ".join(modules[key])
    if modules.get("parameters") and not modules.get("checkpointed"):
        yield "live_uncheckpointed", "yes"
    if modules.get("names"):
        yield "live_parameter_names", " ".join(modules["names"])
    for key in ("layers", "blocks", "numbered"):
        if modules.get(key):
            yield f"live_{key}", " ".join(modules[key])
    for name, one in seen.get("tensors", {}).items():
        yield TENSOR, f"{name}: {one}"
    yield from ((MODULE, f"{name}: {one}") for name, one in seen.get("modules_on", {}).items())
    yield from ((f"live_{key}", seen[key]) for key in _TOLD if seen.get(key))
    yield from ((f"live_{key}_column", one) for key, one in seen.get("columns", {}).items())
    if "loss" in seen:
        yield "live_loss_requires_grad", "yes" if seen["loss"]["requires_grad"] else "no"
        yield "live_reached", str(seen.get("reached", 0))
        yield "live_unreached", str(seen.get("unreached", 0))
    yield from _idle(seen.get("idle_optimizer"))
    for one in seen.get("moved", ())[:1]:
        node = one["node"].rstrip("0123456789").removesuffix("Backward")
        held = one.get("held") or [f"activation saved by {node}"]
        yield f"live_moved_{one.get('kind', 'activation')}", held[0].partition(" ")[2]
        if one.get("kind") == "buffer":
            yield "live_moved_buffer_writes", str(one.get("writes", ""))


def _idle(optimizer: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """The optimizer that a scaler could not step."""
    if optimizer:
        yield IDLE_OPTIMIZER, "{kind}: {state}, {steps} steps before".format(**optimizer)


def _trainable(modules: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What trains. A frozen model says nothing of itself where it carries an adapter, or an own tensor is trained through it.

    Nor where Lightning froze it for another optimizer's turn.
    """
    if modules.get("toggled") and not modules["trainable"]:
        yield "live_toggled", ", ".join(modules["toggled"])
    elif modules["trainable"] or not (modules.get("adapters") or modules.get("flagged")):
        yield "live_trainable", str(modules["trainable"])
    elif modules.get("adapters"):
        yield "live_frozen_adapter", ", ".join(modules["adapters"])
    else:
        yield "live_flagged", ", ".join(modules["flagged"])


def with_live_facts(incident: Incident, failure: Failure) -> Incident:
    """The incident with what the live objects said at its failure, and what a tracer saw."""
    incident = _with(incident, failure.facts)
    return with_trace(incident, failure.traced) if failure.traced else incident


def with_live_objects(incident: Incident, error: BaseException) -> Incident:
    """The incident of an exception of this process, with what its live objects say, or said where it was raised."""
    from explainer.live.crash import look, warned
    from explainer.live.record import NOTED

    noted = (getattr(error, NOTED, None) or {}).get("seen") or {}
    seen, traced = noted if "modules" in noted else look(error), getattr(error, TRACED, None)
    incident = _with(_with_warnings(incident, warned()), facts_of(seen)) if seen else incident
    return with_trace(incident, traced) if traced else incident


def _with_warnings(incident: Incident, printed: list[str]) -> Incident:
    """The incident with the warnings that this process has shown, and the forward call that anomaly mode told of last."""
    from explainer.ingest.text import read_text

    given = [one for text in printed for one in read_text(text)]
    anomaly = next((one for one in reversed(given) if one.forward_frames), Incident())
    return replace(
        incident,
        warnings=(*incident.warnings, *(warning for one in given for warning in one.warnings)),
        forward_frames=incident.forward_frames or anomaly.forward_frames,
        anomaly_node=incident.anomaly_node or anomaly.anomaly_node,
    )


def _with(incident: Incident, facts: Iterable[tuple[str, str]]) -> Incident:
    return replace(incident, facts=(*incident.facts, *(Fact(name=name, value=value) for name, value in facts)))
