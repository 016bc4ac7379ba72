"""The lines of what a traced run saw: which wrote, cut, made or freed it, each with what to say of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from explainer.model.trace import (
    ADDED,
    AGAIN,
    CARRIED,
    CLEARED,
    COMBINED,
    CONSTANT,
    COUNTED,
    CROSSED,
    CUT,
    CUT_STATE,
    DATA_TERM,
    DEAD_TERM,
    DRAWN,
    EARLY,
    EDGES,
    EXPANDED,
    FREED,
    GRAD_OFF,
    HELD,
    HIDDEN_WRITE,
    INDEX,
    JOINED,
    LENDING,
    LOST_LEAF,
    MADE,
    NOT_FINITE,
    ONCE,
    ONCE_MADE,
    PARTED,
    READ,
    REDRAWN,
    REPLAYED,
    RESULTS,
    SAVED_CONSTANT,
    SHARING,
    STARVING_CUT,
    STARVING_OFF,
    STRAYED,
    TAKEN,
    WHOLE,
    WRITE,
    TracedLine,
)
from explainer.verification.around_line import is_memoised
from explainer.verification.read_term import read_terms

MAX_LINES = 8
UNSEEN = "unseen by autograd: the gradient is wrong"
_ALL_ROWS = "all of them change with it"
_OTHER_VALUES = "and gives other values: gradients are those of another computation than the loss"
# What goes wrong without an exception, and stands in the log for the rules to find.
SILENT = frozenset(
    (
        HIDDEN_WRITE,
        STARVING_CUT,
        CROSSED,
        COMBINED,
        DRAWN,
        DATA_TERM,
        DEAD_TERM,
        CLEARED,
        COUNTED,
        REDRAWN,
        REPLAYED,
        EXPANDED,
        LOST_LEAF,
        CUT_STATE,
        SAVED_CONSTANT,
    )
)


def is_silent_fault(traced: Mapping[str, Any]) -> bool:
    """Whether a trace of a program that ended well saw what makes it train otherwise than meant, or not at all.

    Values of a graph that are not finite are a fault where no step was made: the program passes over its losses.
    """
    bad = traced.get("not_finite") or {}
    is_passed_over = bool(traced.get("stepless") and bad.get("in_graph"))
    return is_passed_over or any(line.kind in SILENT for line in lines_of(traced))


def lines_of(traced: Mapping[str, Any]) -> tuple[TracedLine, ...]:
    """The lines of a tracer's report, those of one kind nearest to the failure first, each line once for what it saved."""
    told = reversed(list(_lines(traced)))
    found = {(one.kind, one.file, one.line, _apart(one)): one for one in told}
    return tuple(reversed(found.values()))[:MAX_LINES]


def is_once(one: Mapping[str, Any]) -> bool:
    """Whether what is taken up was made once for all, rather than step by step: kept by a memo it is no state, whenever it was made."""
    return bool(one.get("is_once")) or (
        not one.get("is_shared") and is_memoised(one.get("file") or "", one.get("line") or 0)
    )


def _apart(one: TracedLine) -> str | None:
    """What tells two entries of one kind and line apart."""
    return one.operation if one.kind in (HELD, STRAYED) else one.says if one.kind == COMBINED else one.saved


def _lines(traced: Mapping[str, Any]) -> Iterator[TracedLine]:
    yield from _written(traced)
    for one in traced.get("cuts") or ():
        why = "" if one["grad_mode"] else ", because grad mode is off"
        if one.get("off"):
            says = f"switches grad mode off, and it still is when `{one['operation']}` runs"
            yield from _line(GRAD_OFF, {"operation": "set_grad_enabled", **one["off"]}, says)
        yield from _line(CUT, one, f"`{one['operation']}` takes what requires grad and gives what does not{why}")
    yield from _starved(traced)
    for one in traced.get("cut_states") or ():
        says = f"`{one['operation']}` cuts the state between all steps of a recurrence that one backward goes through: none learns from what came before"
        yield from _line(CUT_STATE, one, says)
    yield from _trains_nothing(traced)
    yield from _replayed(traced)
    if traced.get("crossed"):
        one = traced["crossed"]
        beside = f" that meets a {one['beside']}" if one.get("beside") else ""
        yield from _line(
            CROSSED, one,
            f"`{one['operation']}` of {one['first']} and {one['second']} ([n, 1] {_side(one)}) compares each with each: a loss of all pairs{beside}",
        )  # fmt: skip
    for one in traced.get("combined") or ():
        at = f" (characters {one['span'][0]} to {one['span'][1]} of its line)" if one.get("span") else ""
        inner = f", behind {one['inner']} `{one['operation']}` more" if one["inner"] else ""
        yield from _line(
            COMBINED, one,
            f"`{one['operation']}`{at} of {one['first']} and {one['second']}{inner} ({one['column']} the column of {one['of']}) puts each to each: the loss averages all pairs, and a {one['form']} is meant",
        )  # fmt: skip
    bad = traced.get("not_finite")
    if bad:
        yield from _line(NOT_FINITE, bad, _why_not_finite(bad))
        if bad.get("then"):
            yield from _line(NOT_FINITE, bad["then"], f"`{bad['then']['operation']}` makes NaN of that infinity")
        if bad.get("mask"):
            yield from _line(
                NOT_FINITE, bad["mask"], f"`{bad['mask']['operation']}` put the infinity there that is multiplied by 0"
            )
    yield from _reads(traced)
    yield from _indices(traced)
    if traced.get("constant"):
        one = traced["constant"]
        yield from _line(CONSTANT, one, f"`{one['operation']}` makes the loss here, of nothing that trains")
    yield from _carried(traced)
    yield from _joined(traced)
    yield from _strayed(traced)
    if traced.get("freed"):
        yield from _line(FREED, {"operation": "backward", **traced["freed"]}, "this backward used the graph up")
    yield from _early(traced)
    yield from _parted(traced)


def _indices(traced: Mapping[str, Any]) -> Iterator[TracedLine]:
    """What made integers that a table or a loss has no row or class for."""
    for one in traced.get("indices") or ():
        says = f"makes the integers of which `{one['refused']}` refuses one: they are no rows or classes as they are"
        if one.get("is_edge"):
            says = "makes n + 1 buckets of n edges, and the table has n rows"
        yield from _line(INDEX, {**one, "saved": EDGES if one.get("is_edge") else None}, says)


def _written(traced: Mapping[str, Any]) -> Iterator[TracedLine]:
    """What is written though a backward needs it, or though other rows have the same memory."""
    for one in traced.get("writes") or ():
        unknown = "a checkpointed segment" if one.get("in_segment") else "a function"
        saver = _plain(one["node"]) if one["node"] else unknown
        yield from _line(WRITE, one, f"`{one['operation']}` writes what {saver} saved for backward")
    for one in traced.get("hidden") or ():
        yield from _line(
            HIDDEN_WRITE, one,
            f"{_hidden(one)} what {_plain(one['node'])} saved for backward, {UNSEEN}",
        )  # fmt: skip
    for one in traced.get("overwritten") or ():
        reader = one["reader"]
        says = f"the array has the memory of what the model computed, and is overwritten before `{reader['operation']}` of line {reader['line']} reads that, {UNSEEN}"
        yield from _line(HIDDEN_WRITE, one, says)
    for one in traced.get("expanded") or ():
        says = f"`{one['operation']}` makes rows that are one row in memory, and line {one['write']['line']} writes one of them: {_ALL_ROWS}"
        yield from _line(EXPANDED, one, says)
    for one in traced.get("saved_constants") or ():
        says = f"what the forward of `{one['operation']}` computes and saves is a constant when its backward is derived again: the second derivative lacks a part"
        yield from _line(SAVED_CONSTANT, {**one, "saved": None}, says)


def _early(traced: Mapping[str, Any]) -> Iterator[TracedLine]:
    """What read a tensor before it required grad, and what made that tensor."""
    if traced.get("early"):
        one = traced["early"]
        yield from _line(
            EARLY, one, f"`{one['operation']}` reads it before it requires grad: the gradient finds no way there"
        )
        if one["made"]:
            yield from _line(MADE, one["made"], f"`{one['made']['operation']}` makes what the gradient is asked for")


def _hidden(one: Mapping[str, Any]) -> str:
    if one["operation"] == SHARING:
        return "the tensor has the memory of an array, and the program overwrites"
    if one["operation"] == LENDING:
        return "the array has the memory of what the model computed, and the program overwrites"
    return f"`{one['operation']}` writes"


def _starved(traced: Mapping[str, Any]) -> Iterator[TracedLine]:
    """What keeps parameters of an optimizer from ever getting a gradient, and where grad mode was switched off for it."""
    for one in traced.get("starved") or ():
        what = f"{one['parameters']} parameters" if one["parameters"] > 1 else "a parameter"
        how = "writes through an alias without a graph, and " if one.get("is_write") else ""
        how = how if one["grad_mode"] else "runs with grad mode off, and "
        how = "has a gradient of 0 wherever it has one, and " if one.get("is_flat") else how
        yield from _line(
            STARVING_CUT, one, f"`{one['operation']}` {how}keeps {what} of the optimizer from ever getting a gradient"
        )  # fmt: skip
        if one.get("off"):
            says = f"switches grad mode off for `{one['operation']}`, whose parameters the optimizer owns"
            yield from _line(STARVING_OFF, {"operation": "set_grad_enabled", **one["off"]}, says)


def _trains_nothing(traced: Mapping[str, Any]) -> Iterator[TracedLine]:
    """Samples that lost the gradient which their distribution could give, and terms of a loss that have none."""
    for one in traced.get("drawn") or ():
        says = f"`{one['operation']}` draws from what the model computes without its gradient, and the loss trains on the sample"
        yield from _line(DRAWN, one, says)
    for one in traced.get("cleared") or ():
        many = f"{one['count']} backwards" if one["count"] > 1 else "a backward"
        says = f"`{one['operation']}` throws away the gradients of {many} before each step: only the last one trains"
        yield from _line(CLEARED, one, says)
    for one in traced.get("counted") or ():
        again = one["again"]
        says = f"this `backward` leaves gradients to which that of line {again['line']} adds the same ones: they count twice"
        yield from _line(COUNTED, one, says)
        yield from _line(
            AGAIN, {"operation": "backward", **again}, f"adds to the gradients of line {one['line']} what is in them"
        )
    for one in traced.get("lost_leaves") or ():
        read = f"{os.path.basename(one['read']['file'] or '')}:{one['read']['line']}"
        says = (
            f"`{one['operation']}` computes from a leaf what is no leaf, so that the `.grad` read at {read} stays None"
        )
        yield from _line(LOST_LEAF, one, says)
    for one in traced.get("redrawn") or ():
        says = f"`{one['operation']}` runs a segment whose replay draws other random numbers than its first pass"
        yield from _line(REDRAWN, one, says)
    for one in traced.get("data_terms") or ():
        hungry = (
            f"{one['parameters']} parameters behind it never get"
            if one["parameters"] > 1
            else "a parameter behind it never gets"
        )
        says = f"`{one['operation']}` makes a term of the loss of data alone, while nothing reads an output of that shape: {hungry} a gradient"
        yield from _line(DATA_TERM, one, says)
    for one in traced.get("dead_terms") or ():
        if one.get("off"):
            says = f"switches grad mode off for `{one['operation']}`, and a term of the loss comes of it"
            yield from _line(GRAD_OFF, {"operation": "set_grad_enabled", **one["off"]}, says)
        if one.get("sum") is not None:
            yield from _added(one, one["sum"], is_sum_wrong=True)
            continue
        says = f"`{one['operation']}` leaves a term of the loss without a graph: it trains nothing"
        yield from _line(DEAD_TERM, one, says)
    for one, has_name in read_terms(traced):
        yield from _added(one, one["sum"], is_sum_wrong=has_name)


def _added(one: Mapping[str, Any], total: Mapping[str, Any], *, is_sum_wrong: bool) -> Iterator[TracedLine]:
    """A sum that is given a number, and the line that read it; the sum is wrong where it could have had the tensor."""
    read = f"{os.path.basename(one['file'] or '')}:{one['line']}"
    says = f"adds the number that `{one['operation']}` read at {read} of another term, which trains nothing by that"
    yield from _line(ADDED, {**total, "guess": not is_sum_wrong}, says)
    says = f"`{one['operation']}` leaves a term of the loss without a graph: it trains nothing"
    yield from _line(DEAD_TERM, {**one, "guess": is_sum_wrong}, says)


def _replayed(traced: Mapping[str, Any]) -> Iterator[TracedLine]:
    """Checkpointed segments whose replay gives other values: the write that makes them other ones, the function, else the operation."""
    redrawn = [(one["file"], one["line"]) for one in traced.get("redrawn") or ()]
    for one in traced.get("replayed") or ():
        segment, write = one["segment"], one["write"]
        if (segment["file"], segment["line"]) in redrawn:
            continue
        again = f"when the segment checkpointed at line {segment['line']} runs again in the backward"
        if one["moved_on"]:
            yield from _moved_on(one)
        elif write and one["parameter"]:
            says = f"`{write['operation']}` writes a parameter that is read again {again}, {UNSEEN}"
            yield from _line(HIDDEN_WRITE, write, says)
        elif write:
            says = f"`{write['operation']}` writes what is read again {again}, {_OTHER_VALUES}"
            yield from _line(REPLAYED, write, says)
        else:
            yield from _line(REPLAYED, one, f"`{one['operation']}` gives something else {again}, {_OTHER_VALUES}")


def _parted(traced: Mapping[str, Any]) -> Iterator[TracedLine]:
    """Where the shapes of a replay are others, and the function that reads a name which has moved on."""
    if traced.get("parted"):
        one = traced["parted"]
        yield from _line(
            PARTED, {"operation": one["second"].partition(" ")[0], **one},
            f"the first pass ran {one['first'] or 'nothing more'}, the replay {one['second']}",
        )  # fmt: skip
        if one["moved_on"]:
            yield from _moved_on(one)


def _moved_on(one: Mapping[str, Any]) -> Iterator[TracedLine]:
    says = f"runs a segment again that reads another `{one['moved_on']}` by then, {_OTHER_VALUES}"
    yield from _line(REPLAYED, {"operation": "checkpoint", **one["segment"]}, says)


def _carried(traced: Mapping[str, Any]) -> Iterator[TracedLine]:
    """What ties two steps together: where a value was made, unless its own step computed with it too, and where it was taken up."""
    for one in traced.get("carried") or ():
        taken = one["taken"]
        if is_once(one):
            says = f"`{one['by']}` takes up in each step what was made once, at line {one['line']}, with its graph"
            yield from _line(ONCE, {"operation": one["by"], **taken}, says)
            says = f"`{one['operation']}` makes once what each step takes up with its graph, at line {taken['line']}"
            yield from _line(ONCE_MADE, {**one, "guess": True}, says)
        if is_once(one) or one.get("is_shared"):
            continue
        # Where its own step computed with it too, the line is right: what keeps the result for later is to be found from it.
        says = f"`{one['operation']}` makes what a later step takes up with its graph, at line {taken['line']}"
        yield from _line(CARRIED, {**one, "guess": one["is_used"]}, says)
        # Where the line takes up something of its own step too, what it takes up is not to be detached there.
        says = f"`{one['by']}` takes up what an earlier step made, at line {one['line']}, with its graph"
        yield from _line(TAKEN, {"operation": one["by"], **taken, "guess": one["is_mixed"]}, says)


def _joined(traced: Mapping[str, Any]) -> Iterator[TracedLine]:
    """What takes up the graph of another network's loss; the names that hold it, unless the weights' next step would have missed it.

    A guess, where that optimizer is not cleared before its own backward: what this loss leaves in its weights counts then.
    """
    found = traced.get("joined") or {}
    for one in found.get("lines", ()):
        place = f"{os.path.basename(one['made']['file'] or '')}:{one['made']['line']}"
        says = f"`{one['operation']}` takes up what {place} made for another loss, whose backward is over"
        is_sure = one["is_first"] and (one["is_alone"] or one["is_whole"] or one["operand"] is not None)
        operand = str(one["operand"]) if one["operand"] is not None else None
        operand = WHOLE if one["is_whole"] and not one["is_alone"] else operand
        yield from _line(JOINED, {**one, "guess": not is_sure, "saved": operand}, says)
    for one in found.get("held", ()):
        says = f"`{one['operation']}` holds what another loss has gone back through, with its graph"
        told = {**one, "line": one["line"] or one["first"], "node": one["form"], "guess": not found["is_cleared"]}
        yield from _line(HELD, told, says)


def _strayed(traced: Mapping[str, Any]) -> Iterator[TracedLine]:
    """The loss of one network that went back through what another one is about to train, and left nothing there that counts."""
    found = traced.get("strayed") or {}
    for name in found.get("names", ()):
        says = f"made a loss that went back through `{name}` too, which only the next loss trains"
        yield from _line(STRAYED, {**found, "operation": name}, says)


def _reads(traced: Mapping[str, Any]) -> Iterator[TracedLine]:
    """What saved a tensor that was written later; not for an optimizer's step, whose parameters are no copies.

    Of writes that autograd does not see only those into state: what `.data` does to an activation may be meant to pass it by.
    """
    hidden = [one for one in traced.get("hidden") or () if one.get("state")]
    for one in (*(traced.get("writes") or ()), *hidden):
        if one.get("read") and one["operation"] != "step":
            kept = "its result" if one["read"]["saved"] in RESULTS else "what it read"
            says = f"`{one['read']['operation']}` saves {kept}, which `{one['operation']}` writes before the backward"
            yield from _line(READ, {**one["read"], "node": one["node"]}, says)


def _line(kind: str, one: Mapping[str, Any], says: str) -> Iterator[TracedLine]:
    if one.get("file") and one.get("line"):
        yield TracedLine(
            kind=kind, operation=one["operation"], file=one["file"], line=one["line"], function=one.get("function"),
            node=one.get("node"), says=says, is_guess=bool(one.get("guess")),
            saved=one.get("saved"),
        )  # fmt: skip


def _rows(bad: Mapping[str, Any]) -> str:
    """Which rows of a parameter are not finite, counted from 0, where the others are."""
    rows = [str(one) for one in bad.get("rows") or ()]
    if not rows:
        return ""
    count, whole = bad["broken"]
    more = f" and {count - len(rows)} more" if count > len(rows) else ""
    return f": row{'s' if count > 1 else ''} {', '.join(rows)}{more} of {whole}, from 0"


def _why_not_finite(bad: Mapping[str, Any]) -> str:
    if bad.get("input"):
        if bad["input"] == "loaded":
            return f"`{bad['operation']}` reads what is not finite, and it is loaded into a parameter"
        if bad["input"] == "untouched":
            return f"`{bad['operation']}` was given a parameter that is not finite before any step{_rows(bad)}"
        if bad["input"] == "unfilled":
            return (
                f"`{bad['operation']}` leaves memory as it found it, and nothing writes it before it is computed with"
            )
        if bad.get("infinity"):
            sign = "minus " if bad["infinity"] == "-inf" else ""
            return f"`{bad['operation']}` was given data that holds {sign}infinity"
        if bad["input"] == "state":
            return f"`{bad['operation']}` was given a parameter that a step with a damaged state left not finite"
        given = "a parameter" if bad["input"] == "parameter" else "data"
        return f"`{bad['operation']}` was given {given} that is not finite"
    value = "NaN" if bad["kind"] == "nan" else "infinity"
    if bad["direction"] == "backward":
        return f"the backward of `{bad['operation']}` makes the first {value}"
    return f"`{bad['operation']}` makes the first {value} of the forward"


def _side(one: Mapping[str, Any]) -> str:
    return "first" if len(one["first"]) > len(one["second"]) else "second"


def _plain(node: str) -> str:
    return node.rstrip("0123456789").removesuffix("Backward") or node
