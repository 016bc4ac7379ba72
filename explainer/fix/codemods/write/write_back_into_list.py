"""A loop that writes each tensor of a list in place puts new tensors into the list.

`for h in features: h.mul_(s)` becomes `for index, h in enumerate(features): features[index] = h.mul(s)`; of `outputs.values()`
likewise by key. Only for a list or dictionary whose tensors have no other name that is read afterwards.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.suspicion import suspect
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after
from explainer.fix.write.out_of_place import out_of_place
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.write import ARGUMENT, SUBSCRIPT, Write, find_writes
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Bound, Value, bind_call, bounds_of, scope_of
from explainer.source.value.lineage import loops_of
from explainer.source.value.resolve import resolver_of

_LISTS = (ast.List, ast.ListComp)
_MAPPINGS = (ast.Dict, ast.DictComp)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each write of what a loop over a list or dictionary hands out."""
    if not context.has_failed:
        return
    for write in find_writes(context.program):
        belief = suspect(write, context) if write.kind not in (SUBSCRIPT, ARGUMENT) else None
        edits = _edits(write, context.program) if belief is not None else ()
        if edits:
            why = f"writes `{write.name}`, which the loop hands out, in place"
            yield Proposal(edits=edits, culprit=culprit_of(write.file, write.node, why), belief=belief or 0.0)


def _edits(write: Write, program: Program) -> tuple[Edit, ...]:
    file, name = write.file, write.name
    loops = [
        one
        for one in loops_of(write.node, file)
        if isinstance(one, ast.For) and (_target(one) == name or _of_zip(one, name or "") is not None)
    ]
    made = out_of_place(write)
    if not loops or not made or not made[0].new.startswith(f"{name} = ") or name is None:
        return ()
    loop = loops[0]
    holder = _of_zip(loop, name) or _holder(loop)
    if holder is None or not _is_own(holder, loop, file, program):
        return ()
    head, key = _head(loop, name, file)
    entry = f"{holder.id}[{key}] = "
    statement = file.statement(write.node)
    reads = [
        one for one in walk(loop) if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
    ]
    is_last = statement in loop.body and all(file.span(one)[0] < file.span(statement)[1] for one in reads)
    if is_last:
        return (*head, replace(made[0], new=entry + made[0].new.removeprefix(f"{name} = ")), *made[1:])
    return (*head, *made, insert_after(file, statement, f"{entry}{name}"))


def _target(loop: ast.For) -> str | None:
    """The name that stands for the element; of lists that are gone through side by side, see `_of_zip`."""
    target = loop.target
    if isinstance(target, ast.Tuple) and len(target.elts) == 2 and _called(loop) in ("enumerate", "items"):
        target = target.elts[1]
    return target.id if isinstance(target, ast.Name) else None


def _of_zip(loop: ast.For, name: str) -> ast.Name | None:
    """`levels` of `for level, weight in zip(levels, weights)` for "level"; None where its element has no such name."""
    is_zip = isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "zip"
    if not is_zip or not isinstance(loop.iter, ast.Call) or not isinstance(loop.target, ast.Tuple):
        return None
    pairs = zip(loop.target.elts, loop.iter.args, strict=False)
    return next(
        (given for one, given in pairs if isinstance(one, ast.Name) and one.id == name and isinstance(given, ast.Name)),
        None,
    )


def _called(loop: ast.For) -> str:
    """`enumerate`, `items` or `values` of what is looped over; "" for a plain name."""
    func = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _holder(loop: ast.For) -> ast.Name | None:
    """The name of the list or dictionary."""
    node: ast.expr = loop.iter
    called = _called(loop)
    if (
        isinstance(node, ast.Call)
        and called == "enumerate"
        and len(node.args) == 1
        and isinstance(loop.target, ast.Tuple)
    ):
        node = node.args[0]
    elif isinstance(node, ast.Call) and called in ("items", "values") and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return node if isinstance(node, ast.Name) else None


def _head(loop: ast.For, name: str, file: SourceFile) -> tuple[tuple[Edit, ...], str]:
    """The edits of the loop's head, and the name of the index or key."""
    if isinstance(loop.target, ast.Tuple) and _of_zip(loop, name) is None:
        return (), file.segment(loop.target.elts[0])
    scope = file.enclosing(loop, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
    taken = {one.id for one in walk(scope) if isinstance(one, ast.Name)} if scope is not None else set()
    wanted = ("key", "word") if _called(loop) == "values" else ("index", "position")
    key = next(one for one in (*wanted, f"{wanted[0]}_of_{name}") if one not in taken)
    if _called(loop) == "values":
        assert isinstance(loop.iter, ast.Call)
        assert isinstance(loop.iter.func, ast.Attribute)
        end = file.span(loop.iter.func)[1]
        items = Edit(file=file.path, start=end - len("values"), end=end, new="items")
        return (edit_of(file, loop.target, f"{key}, {name}"), items), key
    target = f"({file.segment(loop.target).strip('()')})" if isinstance(loop.target, ast.Tuple) else name
    return (
        edit_of(file, loop.target, f"{key}, {target}"),
        edit_of(file, loop.iter, f"enumerate({file.segment(loop.iter)})"),
    ), key


def _is_own(holder: ast.Name, loop: ast.For, file: SourceFile, program: Program) -> bool:
    """Whether the name stands for a list or dictionary, and its tensors for nothing else that is read later."""
    scope = scope_of(loop, file)
    found = [one for one in bounds_of(scope) if one.name == holder.id and one.statement is not loop]
    kinds = _MAPPINGS if _called(loop) in ("items", "values") else _LISTS
    if found:
        return _is_made(found, kinds, loop, scope)
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    calls = resolver_of(program).calls_of(scope, file)
    given = [(where, call, bind_call(call, scope, Value(call, where)).get(holder.id)) for where, call in calls]
    return bool(given) and all(_is_given(where, call, value, kinds, program) for where, call, value in given)


def _is_given(
    where: SourceFile, call: ast.Call, value: Value | None, kinds: tuple[type[ast.expr], ...], program: Program
) -> bool:
    if value is None or not isinstance(value.node, ast.Name):
        return False
    name = value.node.id
    scope = scope_of(call, where)
    found = [one for one in bounds_of(scope) if one.name == name]
    if len(found) == 1 and isinstance(found[0].node, ast.Call) and found[0].pick is None:
        return _is_returned(found[0].node, where, kinds, program)
    return bool(found) and _is_made(found, kinds, where.statement(call), scope)


def _is_returned(call: ast.Call, file: SourceFile, kinds: tuple[type[ast.expr], ...], program: Program) -> bool:
    """Whether a function or module of the program makes the container, and hands it out."""
    resolver = resolver_of(program)
    runs = [resolver.method(owner, "forward", where) for where, owner in resolver.classes_of(Value(call.func, file))]
    target = resolver.function_of(call, Value(call, file)) or (runs[0] if len(runs) == 1 else None)
    returns = [one for one in walk(target[1]) if isinstance(one, ast.Return)] if target is not None else []
    if target is None or len(returns) != 1 or not isinstance(returns[0].value, ast.Name):
        return False
    found = [one for one in bounds_of(target[1]) if one.name == returns[0].value.id]
    return bool(found) and _is_made(found, kinds, returns[0], target[1])


def _is_made(found: list[Bound], kinds: tuple[type[ast.expr], ...], at: ast.stmt, scope: ast.AST) -> bool:
    """Whether all that binds a name makes a container of one kind, of tensors that are read through it alone after `at`."""
    whole = [one.node for one in found if not one.fills]
    parts = [one.node for one in found if one.fills]
    for node in whole:
        if not isinstance(node, kinds):
            return False
        parts += node.elts if isinstance(node, ast.List) else node.values if isinstance(node, ast.Dict) else []
    if any(isinstance(one, ast.Constant) for one in parts):
        return False
    named = {one.id for one in parts if isinstance(one, ast.Name)}
    later = (at.end_lineno or at.lineno, at.end_col_offset or 0)
    return bool(whole) and not any(
        isinstance(one, ast.Name)
        and one.id in named
        and (one.lineno, one.col_offset) >= later
        and isinstance(one.ctx, ast.Load)
        for one in walk(scope)
    )
