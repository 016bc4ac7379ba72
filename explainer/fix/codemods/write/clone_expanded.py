"""A tensor that shares memory gets its own before it is written: `x.expand(n, -1).clone()`, `x[1:] = x[:-1].clone()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places
from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.model.trace import EXPANDED
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.place import place_of
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters
from explainer.source.value.lineage import binds, changes, definitions, root_of, scope_of, value_of
from explainer.source.value.resolve import resolver_of

_WARNED = "on expanded tensors is deprecated"
_DEPTH = 3
_SHARING = ("expand", "expand_as", "broadcast_to")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the write that raised, or that a trace saw change more than it names."""
    for line, file, statement in traced_statements(EXPANDED, context):
        value = value_of(statement)
        if value is not None and _sharing(value) is not None:
            yield Proposal(
                edits=(put_method(file, value, ".clone()"),), culprit=culprit_of(file, value, line.says), belief=3.0
            )
    if not context.has_failed:
        return
    for file, statement in (*_warned(context), *crash_places(context)):
        names = changes(statement) or ({name} if (name := _written(statement)) else set())
        for name in names:
            yield from _expanded(name, statement, file, context.program)
            yield from _handed_in(name, statement, file, context.program)
            yield from _own_part(name, statement, file)
            yield from _given(name, statement, file, context.program)
        return


def _warned(context: Context) -> Iterator[tuple[SourceFile, ast.stmt]]:
    """The write by index that the forward lets through with a warning, where a backward is what fails."""
    for one in context.incident.warnings:
        path = place_of(one.file, context.program.root) if one.file and _WARNED in one.message else None
        statement = context.program.at(path, one.line) if path is not None and one.line else None
        if path is not None and statement is not None:
            yield context.program.files[path], statement


def _written(statement: ast.stmt) -> str | None:
    call = statement.value if isinstance(statement, (ast.Expr, ast.Assign, ast.Return)) else None
    return root_of(call) if isinstance(call, ast.Call) else None


def _expanded(name: str, at: ast.stmt, file: SourceFile, program: Program) -> Iterator[Proposal]:
    """Where the tensor was made by `expand`, which repeats it without memory."""
    scope = scope_of(at, file, program)
    made: list[ast.stmt] = []
    if name.startswith("self."):
        owner = program.names(file).class_of(at)
        made = list(program.names(file).assignments(name, owner)) if owner is not None else []
    elif scope is not None:
        made = [one for one in definitions(name, at, scope) if name in binds(one)]
    for one in made:
        value = value_of(one, name)
        call = _sharing(value)
        if call is not None and value is not None:
            yield Proposal(
                edits=(put_method(file, value, ".clone()"),),
                culprit=culprit_of(file, value, f"makes `{name}` without memory of its own, and it is written later"),
                belief=2.0,
            )


def _handed_in(name: str, at: ast.stmt, file: SourceFile, program: Program) -> Iterator[Proposal]:
    """Where a function is given what `expand` made, and writes it: the callers that made it so give it memory."""
    read = next((one for one in walk(at) if isinstance(one, ast.Name) and one.id == name), None)
    scope = scope_of(at, file, program)
    if (
        read is None
        or not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef))
        or name not in all_parameters(scope)
    ):
        return
    for one in _made_by_callers(Value(read, file), program, 0):
        if _sharing(one.node) is not None:
            why = f"makes what `{scope.name}` writes without memory of its own"
            yield Proposal(
                edits=(put_method(one.file, one.node, ".clone()"),),
                culprit=culprit_of(one.file, one.node, why),
                belief=2.0,
            )


def _given(name: str, at: ast.stmt, file: SourceFile, program: Program) -> Iterator[Proposal]:
    """What a call gave that nobody can follow, `day = self.guess(n)`: its result shares memory, as torch says."""
    scope = scope_of(at, file, program)
    made = [one for one in definitions(name, at, scope) if name in binds(one)] if scope is not None else []
    value = value_of(made[0], name) if len(made) == 1 else None
    called = dotted_name(value.func) if isinstance(value, ast.Call) else None
    is_own = (
        called is not None and called.removeprefix("self.").isidentifier()
    )  # no method of a tensor, nothing of torch
    if value is not None and is_own and not name.startswith("self."):
        yield Proposal(
            edits=(put_method(file, value, ".clone()"),),
            culprit=culprit_of(file, value, f"gives `{name}`, whose rows share their memory, and it is written later"),
            belief=1.2,
        )


def _made_by_callers(value: Value, program: Program, depth: int) -> Iterator[Value]:
    for one in resolver_of(program).behind(value):
        target = resolver_of(program).function_of(one.node, one) if isinstance(one.node, ast.Call) else None
        if isinstance(one.node, ast.Name) and depth < _DEPTH:
            yield from _made_by_callers(one, program, depth + 1)
        elif target is not None and isinstance(one.node, ast.Call) and one.pick is None:
            yield from resolver_of(program).returns_of(target, one.node, one)
        elif isinstance(one.node, ast.expr) and one.pick is None:
            yield one


def _sharing(value: ast.expr | None) -> ast.Call | None:
    """The `expand` that a value ends with, views behind it left aside."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr in _SHARING:
            return value
        if value.func.attr not in ("view", "transpose", "permute", "unsqueeze", "squeeze", "to"):
            return None
        value = value.func.value
    return None


def _own_part(name: str, statement: ast.stmt, file: SourceFile) -> Iterator[Proposal]:
    """`x[1:] = x[:-1]`: the part that is read is copied first."""
    value = statement.value if isinstance(statement, ast.Expr) else value_of(statement)
    for node in walk(value) if value is not None else ():
        if not isinstance(node, ast.Subscript) or dotted_name(node.value) != name or not isinstance(node.ctx, ast.Load):
            continue
        call = file.parents.get(node)
        is_target = isinstance(call, ast.Attribute) and call.attr.endswith("_")
        if is_target or (isinstance(call, ast.Attribute) and call.attr == "clone"):
            continue
        yield Proposal(
            edits=(put_method(file, node, ".clone()"),),
            culprit=culprit_of(file, statement, f"reads a part of `{name}` that the same line writes"),
            belief=1.0 if isinstance(statement, ast.AugAssign) else 1.8,
        )
