"""What a trace saw another network make, whose own loss has gone back through it and been stepped for, is data for this loss.

`states = {key: part.detach() for key, part in states.items()}` behind that network's step, in the function that runs both, or that
was given the states: whatever the two call in between, a helper that steps, an imagined rollout. Where no running function holds it
by a name, the line that takes it up, if it does nothing else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.fix.graph.detachment import detached
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.model.trace import HELD, JOINED, WHOLE, TracedLine
from explainer.source.file import SourceFile
from explainer.source.name import bound_names, dotted_name
from explainer.source.place import place_of
from explainer.source.tree import walk
from explainer.source.value.lineage import Scope, block_of, scope_of, statements_of
from explainer.source.value.nesting import TENSOR, Nesting
from explainer.source.value.resolve import resolver_of

_WHY = "goes back into what `{name}` was made by, whose own loss has used that graph up"
_TAKES = "takes up the graph of another network's loss, which has used it up"
_LEFT = "right where the other optimizer is not to take what this loss leaves in its weights: it is not cleared before its own backward"
_PAIR = 2
_NAMES = (ast.Name, ast.Attribute, ast.Subscript)
_SIGNS = {
    ast.Add: ("add", "__add__"), ast.Sub: ("sub", "__sub__"), ast.Mult: ("mul", "__mul__"), ast.Div: ("div", "__truediv__"),
    ast.MatMult: ("matmul", "__matmul__"),
}  # fmt: skip
_HEADS = ("iter", "test", "items")


class _Held(NamedTuple):
    """A name that holds such values, its statements from the other backward to the failure, and the first that reads it."""

    line: TracedLine
    file: SourceFile
    reader: ast.stmt
    is_derived: bool


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all names of the innermost running function that holds such values; else one for the lines that take them up."""
    if not context.has_failed:
        return
    found = [
        held for line, file, _ in traced_statements(HELD, context, guesses=True) if (held := _held(line, file, context))
    ]
    inner = [one for one in found if (one.file, one.line.function) == (found[0].file, found[0].line.function)]
    first = [one for one in inner if not one.is_derived] or inner
    if not first:
        yield from _where_taken(context)
        return
    is_guess = any(one.line.is_guess for one in first)
    yield Proposal(
        edits=tuple(_cut(one) for one in first),
        culprit=culprit_of(first[0].file, first[0].reader, _WHY.format(name=first[0].line.operation)),
        belief=2.6,
        applicability="unsafe" if is_guess else None,
        because=_LEFT if is_guess else None,
    )


def _held(line: TracedLine, file: SourceFile, context: Context) -> _Held | None:
    """Where the value is first read between the other network's backward and the failure; None where it is not."""
    failing = _failing(line, file, context)
    scope = scope_of(failing, file, context.program) if failing is not None else None
    if failing is None or scope is None:
        return None
    begun = line.line if line.line != getattr(scope, "lineno", 0) else 0
    between = [one for one in statements_of(scope) if begun < one.lineno <= failing.lineno]
    bound = [one for one in between if line.operation in bound_names(one)]
    readers = [one for one in between if _reads(one, line.operation)]
    readers = [one for one in readers if not bound or one.lineno > bound[-1].lineno]
    reader = next((_beside(one, failing, scope, file) for one in readers), None)
    if reader is None or reader.lineno <= begun:
        return None
    return _Held(line, file, reader, bool(bound))


def _failing(line: TracedLine, file: SourceFile, context: Context) -> ast.stmt | None:
    """The statement at which the function of a traced line was when the backward failed."""
    for frame in reversed(context.frames):
        if frame.function == line.function and frame.line and place_of(frame.file, context.program.root) == file.path:
            return context.program.at(file.path, frame.line, frame.mark)
    return None


def _reads(statement: ast.stmt, name: str) -> bool:
    """Whether a statement reads a name, of one with a block its head."""
    heads = [getattr(statement, one) for one in _HEADS if getattr(statement, one, None) is not None]
    parts = heads if isinstance(getattr(statement, "body", None), list) else [statement]
    return any(
        isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and ast.unparse(node) == name
        for part in parts
        for one in (part if isinstance(part, list) else [part])
        for node in walk(one)
    )


def _beside(reader: ast.stmt, failing: ast.stmt, scope: Scope, file: SourceFile) -> ast.stmt | None:
    """The statement round a reader in the innermost block that leads to the failing one too."""
    above: set[ast.AST] = {failing}
    at = file.parents.get(failing)
    while at is not None and at is not scope:
        above.add(at)
        at = file.parents.get(at)
    node: ast.AST | None = reader
    while isinstance(node, ast.stmt) and node is not scope:
        if any(one in above for one in block_of(node, file)):
            return node
        node = file.enclosing(node, ast.stmt)
    return None


def _cut(held: _Held) -> Edit:
    name = held.line.operation
    return insert_before(held.file, held.reader, f"{name} = {detached(_nesting(held.line.node or ''), name)}")


def _nesting(form: str) -> Nesting:
    """`dict[tuple[tensor]]` as a nesting."""
    kind, _, inner = form.removesuffix("]").partition("[")
    return Nesting(kind, each=_nesting(inner)) if inner else TENSOR


def _where_taken(context: Context) -> Iterator[Proposal]:
    """The lines that take such values up by a method of one tensor, in functions that are called from one place."""
    edits: list[Edit] = []
    places: list[tuple[SourceFile, ast.stmt]] = []
    for line, file, statement in traced_statements(JOINED, context, guesses=True):
        function = context.program.names(file).function_of(statement)
        is_shared = function is not None and len(resolver_of(context.program).calls_of(function, file)) > 1
        taken = list(_operands(line, statement))
        if line.is_guess or is_shared or len(taken) != 1:
            return
        edits.append(put_method(file, taken[0], ".detach()"))
        places.append((file, statement))
    if edits:
        yield Proposal(edits=tuple(edits), culprit=culprit_of(*places[0], _TAKES), belief=2.0)


def _operands(line: TracedLine, statement: ast.stmt) -> Iterator[ast.expr]:
    """What a traced operation takes up: the tensor whose method it is, one of the two that it is given, or all: then what it gives."""
    if line.saved == WHOLE:
        calls = (node for node in walk(statement) if isinstance(node, ast.Call))
        yield from (one for one in calls if (dotted_name(one.func) or "").rpartition(".")[2] == line.operation)
        return
    for node in walk(statement):
        if isinstance(node, ast.BinOp) and line.saved and line.operation in _SIGNS.get(type(node.op), ()):
            yield (node.left, node.right)[int(line.saved)]
        elif isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if name != line.operation:
                continue
            if line.saved and len(node.args) == _PAIR:
                yield node.args[int(line.saved)]
            elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, _NAMES) and not line.saved:
                yield node.func.value
