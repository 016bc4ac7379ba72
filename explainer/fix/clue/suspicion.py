"""How much a failure's own words point at one in-place write among those of a program."""

from __future__ import annotations

import ast
import re

from explainer.fix.clue.crash import raised_at
from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context
from explainer.model.trace import WRITE
from explainer.source.graph.operand import calls_given
from explainer.source.graph.operation import SAVES_OUTPUT, Operation, is_named
from explainer.source.graph.write import ARGUMENT, Write
from explainer.source.network.eval_only import is_eval_only
from explainer.source.tree import walk

UNLIKELY = -1.0
_MANY = 4


def suspect(write: Write, context: Context) -> float | None:
    """The belief that `write` is the guilty one, in log-odds; None where nothing speaks for it.

    Without a failure only what the source proves counts: the write destroys a value that a backward reads.
    """
    if context.options.get("at") == "raise":
        return _raised(write, context)
    node = str(context.fields.get("node") or context.fields.get("op") or "")
    node = re.sub(r"(?:Backward)?\d*$", "", node)
    if not context.has_failed:
        return 0.0 if write.is_needed else None
    if write.is_needed is False:
        return UNLIKELY if _is_traced(write, context) else None
    belief = 1.0 if write.is_needed else 0.0
    if node:
        belief += _named(write, node, context)
    belief += _nearness(write, context) + _often(write, context)
    if is_eval_only(write.node, write.file):
        belief -= 1.5  # it ran because the model was in evaluation mode: that is the fault, and this its symptom
    elif belief <= UNLIKELY and _is_traced(write, context):
        return UNLIKELY
    return belief if belief > UNLIKELY else None


def _named(write: Write, node: str, context: Context) -> float:
    """What the message's node says of a write: a saved result keeps the node that made it, a saved operand shows the last write's.

    Read on torch 2.13: a result is saved as it is made, so at version 0, unless the operation that made it was in place;
    a view that was saved shows AsStrided once its base, or another view of it, is written.
    """
    expected = context.fields.get("expected")
    if node == "AsStrided" and _is_viewed(write, context):
        return 1.0
    made = [one for one in write.overwrites if one is not None and is_named(one, node)]
    if isinstance(expected, int):
        made = [one for one in made if one.name not in SAVES_OUTPUT or one.is_in_place == (expected > 0)]
    if made:
        return 2.0
    if write.makes is not None and is_named(Operation(write.makes, ()), node):
        return 1.5
    # What a caller handed in, or what a branch made that is not known, does not rule the write out.
    is_known = bool(write.overwrites) and None not in write.overwrites
    return -1.5 if is_known else -0.6 if write.makes else 0.0


def _often(write: Write, context: Context) -> float:
    """Where the tensor was written many times, a write in a loop is likelier than one that runs once."""
    version = context.fields.get("version")
    is_many = isinstance(version, int) and version >= _MANY
    loop = write.file.enclosing(write.node, ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)
    return 0.3 if is_many and isinstance(loop, (ast.For, ast.While)) else 0.0


def _is_viewed(write: Write, context: Context) -> bool:
    """Whether the tensor that is written was given to a module or function before, which may have saved a view of it."""
    if write.name is None:
        return False
    return bool(calls_given(write.name, write.node, write.file, context.program))


def _is_traced(write: Write, context: Context) -> bool:
    """Whether a trace saw the write: what the source seems to say against it is then wrong."""
    return any(
        file is write.file and statement is file.statement(write.node)
        for file, statement in traced_places(WRITE, context)
    )


def _raised(write: Write, context: Context) -> float | None:
    """For messages that come at the write itself: the line that raised, or an in-place activation under the call that did."""
    if write.kind == ARGUMENT:
        return 0.5
    for file, statement in raised_at(context):
        is_update = any(isinstance(node, ast.Attribute) and node.attr == "grad" for node in walk(statement))
        if file is write.file and statement is file.statement(write.node):
            return None if is_update else 2.0
    return None


def _nearness(write: Write, context: Context) -> float:
    """Frames that lie in the same function, or forward frames that name the line, make a write more likely."""
    line = write.node.lineno
    end = write.node.end_lineno or line
    for frame in context.incident.forward_frames:
        if frame.line and write.file.path.endswith(frame.file.rpartition("/")[2]) and line <= frame.line <= end:
            return 1.5
    function = context.program.names(write.file).function_of(write.node)
    if function is None:
        return 0.0
    if function.name == "__init__" and write.kind != ARGUMENT:
        return -2.0
    return 0.3 if function.name in ("forward", "__call__", "training_step", "compute_loss") else 0.0
