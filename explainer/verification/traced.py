"""What a traced run saw, as lines and facts of its incident, in the words that the rules read."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from explainer.model.incident import Fact, Frame, Incident, LogLine, WarningRecord
from explainer.model.trace import (
    BAD_INPUT,
    CUT,
    FREED_WHOLE,
    LOGARITHM,
    MINUS_INFINITY,
    NOT_FINITE,
    ONCE_IN_STEP,
    STARVED_OF_NUMBER,
    WRITE,
    TracedLine,
)
from explainer.verification.around_line import parameters_at
from explainer.verification.traced_line import SILENT, is_once, lines_of

GROWTH = "traced_growth"  # a fact without a line


def with_trace(incident: Incident, traced: Mapping[str, Any]) -> Incident:
    """The incident with the traced lines, and what rules read of them: facts, a line of the log, the forward stack."""
    lines = lines_of(traced)
    incident = replace(incident, warnings=(*incident.warnings, *_silenced(traced)))
    facts = [Fact(name=name, value=value) for name, value in (*_facts(lines, traced), *_of_data(traced, incident))]
    incident = replace(incident, traced=(*incident.traced, *lines), facts=(*incident.facts, *facts))
    silent = [
        LogLine(text=f"traced: {one.operation} at {one.file}:{one.line}: {one.says}")
        for one in lines
        if one.kind in SILENT
    ]
    incident = replace(incident, log=(*incident.log, *silent))
    first = next((one for one in lines if one.kind == NOT_FINITE), None)
    if first is None or incident.anomaly_node is not None:
        return incident
    bad = traced["not_finite"]
    told = f"traced: {first.says}"
    if first.node and not bad.get("input"):
        way = "in the backward" if bad["direction"] == "backward" else "in the forward"
        told = f"traced: Function '{first.node}' made the first {bad['kind']} {way}"
    code = linecache.getline(first.file, first.line).strip()
    frame = Frame(file=first.file, line=first.line, function=first.function, code=code or None)
    return replace(
        incident,
        log=(*incident.log, LogLine(text=told)),
        anomaly_node=None if bad.get("input") else first.node,
        forward_frames=(*incident.forward_frames, frame),
    )


def _silenced(traced: Mapping[str, Any]) -> Iterator[WarningRecord]:
    """What NumPy would have warned of, where data that is not finite came in and the program had it say nothing."""
    is_data = (traced.get("not_finite") or {}).get("input") == "data"
    for one in (traced.get("silenced") or ()) if is_data else ():
        code = linecache.getline(one["file"], one["line"]).strip()
        yield WarningRecord(
            category="RuntimeWarning", message=one["says"], file=one["file"], line=one["line"], code=code or None
        )


def _of_data(traced: Mapping[str, Any], incident: Incident) -> Iterator[tuple[str, str]]:
    """What is known of data that is not finite: whether NumPy has taken the logarithm of a 0, whose infinity nothing replaced."""
    bad = traced.get("not_finite") or {}
    if bad.get("input") != "data":
        return
    heard = [one for one in incident.warnings if not _REPLACES.search(one.code or "")]
    logarithm = next((found[1] for one in heard if (found := _LOGARITHM.search(one.message))), None)
    if bad.get("infinity") != "-inf":
        yield BAD_INPUT, "data"
        if logarithm is not None and bad.get("is_column"):
            yield "traced_data_after_logarithm", logarithm
    else:
        yield BAD_INPUT, MINUS_INFINITY if logarithm is None else LOGARITHM


_ASKS_ALONE = re.compile(r"\bgrad\(")
_LOGARITHM = re.compile(r"divide by zero encountered in (log(?:2|10)?)\b")
_REPLACES = re.compile(r"\b(?:where|nan_to_num|select|isfinite|isneginf)\(")
_DIVIDES = re.compile(r"/|div")
# A function that is given queries as well is the attention itself: what it writes are its scores.
_QUERIES = frozenset({"q", "query", "queries", "query_states"})
_SLICE = re.compile(r"\s*[\w.]+\[[^=]*:[^=]*\]\s*=")
_KEYS_AND_VALUES = (
    {"keys", "values"},
    {"k", "v"},
    {"key", "value"},
    {"key_states", "value_states"},
    {"new_k", "new_v"},
    {"k_new", "v_new"},
    {"k_val", "v_val"},
)
_WRITES = frozenset({"__setitem__", "copy_", "index_copy_", "index_put_", "index_add_", "scatter_", "slice_scatter"})
_CACHE = re.compile(r"cache(?!d)|(?<![a-z])(?:kv|past_?key)", re.IGNORECASE)


def _facts_of_writes(lines: Iterable[TracedLine]) -> Iterator[tuple[str, str]]:
    """What the code of a traced write says of it: that a state was loaded, that a cache was filled."""
    for one in lines:
        code, name = linecache.getline(one.file, one.line), os.path.basename(one.file)
        if ".load_state_dict(" in code:
            yield "traced_loaded", f"{name}:{one.line}"
        if _fills_cache(one.file, one.line, one.function):
            yield "traced_cache", f"{name}:{one.line}"


def _fills_cache(file: str, line: int, function: str | None) -> bool:
    code, given = linecache.getline(file, line), parameters_at(file, line)
    is_filled = _SLICE.match(code) and any(pair <= given for pair in _KEYS_AND_VALUES) and not given & _QUERIES
    return bool(is_filled or _CACHE.search(f"{os.path.basename(file)} {function} {code}"))


def _facts_of_carried(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What ties a loss to the graph that an earlier backward used up."""
    kind = "once" if is_once(one) else "shared" if one.get("is_shared") else "state"
    yield f"traced_{kind}", one["operation"]
    if kind == "once" and one.get("is_waiting"):
        yield ONCE_IN_STEP, one["operation"]
    if one["operation"] in _WRITES and one.get("file") and _fills_cache(one["file"], one["line"], one.get("function")):
        yield "traced_cache", f"{os.path.basename(one['file'])}:{one['line']}"


def _facts_of_freed(freed: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Which backward of the same round used up a part of what a loss goes back through; not a gradient that was asked for by itself."""
    code = linecache.getline(freed["file"], freed["line"]) if freed.get("file") else ""
    if code and not _ASKS_ALONE.search(code) and freed.get("in_round") and not freed.get("is_whole"):
        yield "traced_freed_in_round", f"{os.path.basename(freed['file'])}:{freed['line']}"
    if code and freed.get("in_round") and freed.get("is_whole"):
        yield FREED_WHOLE, f"{os.path.basename(freed['file'])}:{freed['line']}"


def _facts_of_starving(starved: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """How parameters are kept from a gradient: with grad mode off, by a write, by taking whole terms of the loss out of the graph."""
    if starved:
        yield "traced_starving_cut_grad_mode", "yes" if starved[0]["grad_mode"] else "no"
        if starved[0].get("is_write") and starved[0]["grad_mode"]:
            yield "traced_starving_write", starved[0]["operation"]
        if all(one.get("is_number") for one in starved):
            yield STARVED_OF_NUMBER, starved[0]["operation"]


def _facts(lines: tuple[TracedLine, ...], traced: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for one in traced.get("carried") or ():
        yield from _facts_of_carried(one)
    yield from _facts_of_freed(traced.get("freed") or {})
    for one in lines:
        kind = "conversion" if one.kind == CUT and one.is_guess else one.kind.replace("-", "_")
        yield f"traced_{kind}", one.operation
    yield from _facts_of_writes(one for one in lines if one.kind == WRITE)
    for write in traced.get("writes") or ():
        if write.get("in_segment"):
            yield "traced_argument_of_segment", write["operation"]
    for one in traced.get("indices") or ():
        if one.get("turned"):
            yield "traced_turned_index", one["operation"]
    stepped = [one for one in traced.get("replayed") or () if one["parameter"] and not one["moved_on"]]
    hidden = [*(traced.get("hidden") or ()), *stepped]
    if hidden:
        kind = "parameter" if hidden[0].get("parameter") else "state" if hidden[0].get("state") else "activation"
        yield "traced_hidden_write_of", kind
    cuts = [one for one in traced.get("cuts") or () if one.get("line")]
    if cuts:
        yield "traced_cut_grad_mode", "yes" if cuts[0]["grad_mode"] else "no"
    if any(one.get("off") for one in traced.get("dead_terms") or ()):
        yield "traced_dead_term_grad_mode", "no"
    yield from _facts_of_starving([one for one in traced.get("starved") or () if one.get("line")])
    if traced.get("grown"):
        least, last = traced["grown"]
        yield GROWTH, f"{least:.3g} to {last:.3g}"
    if traced.get("not_finite"):
        yield from _facts_of_values(traced["not_finite"])


def _facts_of_values(bad: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is known of the first value that was not finite.

    A sum over labels that the program divides itself is a division first: its line can be guarded. A library's cannot.
    """
    if bad.get("input"):
        if bad["input"] != "data":
            yield BAD_INPUT, bad["input"]
    elif bad.get("mask"):
        yield "traced_nan_of_mask", bad["operation"]
    elif bad.get("of_labels") and not _DIVIDES.search(linecache.getline(bad.get("file") or "", bad.get("line") or 0)):
        yield "traced_quotient_of_labels", bad["operation"]
    elif bad["direction"] == "forward" and not bad.get("node"):
        yield "traced_nan_without_graph", bad["operation"]
    elif bad["direction"] == "forward":
        yield "traced_nan_of_finite" if bad["kind"] == "nan" else "traced_infinity_of_finite", bad["operation"]
    if bad.get("by_count"):
        yield "traced_quotient_by_count", bad["operation"]
    if bad.get("by_none_negative"):
        yield "traced_quotient_by_none_negative", bad["operation"]
    if bad.get("then"):
        yield "traced_nan_of_infinity", bad["then"]["operation"]
    if bad.get("narrow"):
        yield "traced_float16_infinity", bad["operation"]
