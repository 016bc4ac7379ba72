"""What the tracer saw, in the plan of a fix: its lines are facts, and lead."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal
from explainer.model.finding import Culprit
from explainer.model.trace import (
    ADDED,
    BAD_INPUT,
    CARRIED,
    CONSTANT,
    CROSSED,
    CUT,
    CUT_STATE,
    DATA_TERM,
    DEAD_TERM,
    DRAWN,
    EARLY,
    EXPANDED,
    GRAD_OFF,
    HIDDEN_WRITE,
    INDEX,
    JOINED,
    LOST_LEAF,
    NOT_FINITE,
    OF_DATA,
    ONCE_MADE,
    PARTED,
    REPLAYED,
    STARVING_CUT,
    STARVING_OFF,
    STRAYED,
    UNOWNED,
    WRITE,
    TracedLine,
)
from explainer.source.file import SourceFile
from explainer.source.place import place_of

# Which lines speak for which family. A write speaks for a shared mask under checkpointing, a cut for all lost graphs; the
# backward that used a graph up is rarely the line to change.
_SPEAKS = {
    "inplace": (WRITE, HIDDEN_WRITE, EXPANDED),
    "checkpoint": (PARTED, REPLAYED),
    "backward": (CARRIED, JOINED, STRAYED, ONCE_MADE),
    "no-graph": (
        GRAD_OFF,
        CUT,
        STARVING_OFF,
        STARVING_CUT,
        CUT_STATE,
        UNOWNED,
        DRAWN,
        CONSTANT,
        ADDED,
        DATA_TERM,
        DEAD_TERM,
        EARLY,
        LOST_LEAF,
    ),
    "nan": (NOT_FINITE,),
    "shape": (CROSSED, INDEX),
}
# Lines that speak for one cause of their family only.
_OF_ONE = {
    INDEX: "shape/index-out-of-range",
    GRAD_OFF: "no-graph/grad-mode-off",
    STARVING_OFF: "no-graph/grad-mode-off",
    UNOWNED: "no-graph/empty-parameter-list",
    DRAWN: "no-graph/non-differentiable-op",
    CONSTANT: "no-graph/loss-not-from-model",
    DATA_TERM: "no-graph/loss-not-from-model",
    CARRIED: "backward/state-carried-across-steps",
    ONCE_MADE: "backward/graph-built-outside-loop",
    JOINED: "backward/shared-graph-two-losses",
    STRAYED: "backward/shared-graph-two-losses",
    EXPANDED: "inplace/overlapping-memory",
    EARLY: "no-graph/input-not-in-graph",
    LOST_LEAF: "no-graph/grad-of-non-leaf",
}
_IS_BACKWARD = re.compile(r"\bbackward\(|\.grad\(")
_COUNTS = frozenset(("arange", "range"))
_BELIEF = 3.0
_NEAR = 1.0

Culprits = dict[tuple[str, int | None], Culprit]


def traced_belief(proposal: Proposal, cause: str, context: Context) -> float:
    """How much a proposal gains because its line, or one of its edits, is what the tracer saw."""
    gained = 0.0
    for one, path in _lines(cause, context):
        if one.kind == ONCE_MADE:
            continue  # where to make it anew, or to cut it, is another question
        if proposal.culprit.file == path and proposal.culprit.line == one.line:
            return _BELIEF
        for edit in proposal.edits:
            file = context.program.files.get(edit.file)
            if (
                edit.file == path
                and file is not None
                and file.line_of(edit.start) <= one.line <= file.line_of(edit.end)
            ):
                gained = _NEAR
    return gained


def traced_first(
    culprits: Culprits, cause: str, context: Context, *, is_cured: bool = False, is_open: bool = False
) -> Culprits:
    """The guilty lines with those that the tracer saw before all others; the expression of a line that is known stays marked.

    Where an edit cures the lookup of a refused index, its line leads, and the line that made the index follows. So does one
    that counts positions: there is nothing wrong with them, but with the table or the length. So does the line that adds the
    number which another one read, where an edit cures that. What made a value once leads where the line `is_open`: no other one
    was found in the program.
    """
    led: Culprits = {}
    after: Culprits = {}
    for one, path in _lines(cause, context):
        is_led = is_open and one.kind == ONCE_MADE
        # Where passes part is a symptom of what stands before it.
        if (one.is_guess or one.kind == PARTED or cause in _ELSEWHERE) and culprits and not is_led:
            continue
        known = culprits.get((path, one.line))
        file = context.program.files.get(path)
        code = file.line(one.line).strip() if file is not None else None
        if one.kind == REPLAYED and culprits and _IS_BACKWARD.search(code or ""):
            continue  # the segment is a library's, and the program's own line no more than what runs it again
        made = known or Culprit(file=path, line=one.line, function=one.function, code=code, why=one.says)
        is_second = one.kind == INDEX and bool(culprits) and (is_cured or one.operation in _COUNTS)
        is_second = is_second or (one.kind == ADDED and is_cured and known is None)
        (after if is_second else led)[path, one.line] = made
    return {**led, **{key: value for key, value in culprits.items() if key not in led}, **after}


def traced_places(kind: str, context: Context) -> Iterator[tuple[SourceFile, ast.stmt]]:
    """The statements of the program at the traced lines of a kind, those that the tracer saw rather than concluded."""
    for _, file, statement in traced_statements(kind, context):
        yield file, statement


def traced_statements(
    kind: str, context: Context, *, guesses: bool = False
) -> Iterator[tuple[TracedLine, SourceFile, ast.stmt]]:
    """The traced lines of a kind, each with its statement; those that the tracer concluded where they are asked for."""
    for one in context.incident.traced:
        path = place_of(one.file, context.program.root)
        statement = context.program.at(path, one.line) if path is not None else None
        if one.kind == kind and (guesses or not one.is_guess) and path is not None and statement is not None:
            yield one, context.program.files[path], statement


# A cut is the line to change where the program itself cuts; what it froze, or an adapter, lies elsewhere.
_CUTS = ("no-graph/detached", "no-graph/non-differentiable-op", "no-graph/grad-mode-off")


# The write is a right line of the model: what uses the model so is to change. So is the one that meets what a rate has made.
_ELSEWHERE = (
    "inplace/cache-updated-in-training",
    "inplace/patched-model-outside-its-trainer",
    "nan/learning-rate-divergence",
    "nan/all-labels-ignored",
)


def _lines(cause: str, context: Context) -> Iterator[tuple[TracedLine, str]]:
    """The traced lines of the program itself that speak for a cause."""
    kinds = _SPEAKS.get(cause.partition("/")[0], ())
    root = context.program.root
    is_of_data = any(one.name == BAD_INPUT and one.value in OF_DATA for one in context.incident.facts)
    if cause == "nan/bad-input" or (is_of_data and cause.startswith("nan/")):
        return  # the line that met the data is innocent
    # Where grad mode was switched off comes before all that ran without it.
    for one in sorted(context.incident.traced, key=lambda line: _OF_ONE.get(line.kind) != cause):
        if cause != _OF_ONE.get(one.kind, cause):
            continue
        if one.kind in kinds and (one.kind not in (CUT, CUT_STATE, STARVING_CUT, DEAD_TERM, ADDED) or cause in _CUTS):
            path = place_of(one.file, root)
            if path is not None and path.startswith(root + os.sep):
                yield one, path
