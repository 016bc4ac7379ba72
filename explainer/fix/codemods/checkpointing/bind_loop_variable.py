"""Hands a checkpointed function the loop's variable as it is: `checkpoint(block, x)` for `checkpoint(lambda h: block(h), x)`.

A function reads the names round it when it runs. The replay runs in the backward, when the loop is over: it finds what the last
round has left there. Where the function only passes its arguments on, what it calls is checkpointed itself; else the names
become defaults, which are read once: `lambda h, block=block: h + block(h)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import is_crash
from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.graph.uncheckpoint import checkpoint_calls
from explainer.model.patch import Edit
from explainer.model.trace import REPLAYED
from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.tree import walk
from explainer.source.value.binding import all_parameters, bounds_of, scope_of, walk_scope

_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.GeneratorExp)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each checkpointed function of a loop that reads what the loop binds anew."""
    if not context.has_failed:
        return
    seen = list(traced_places(REPLAYED, context))
    for file, call in checkpoint_calls(context.program):
        scope = scope_of(call, file)
        loop = file.enclosing(call, *_LOOPS)
        function = _function(call.args[0], loop, file)
        if loop is None or function is None or scope_of(loop, file) is not scope or function.args.kwarg is not None:
            continue
        moving = _bound_by(loop, scope)
        names = list(dict.fromkeys(name for name in _read(function) if name in moving))
        if names:
            statement = file.statement(call)
            is_seen = any(one is file and place is statement for one, place in seen)
            said = "`, `".join(names)
            yield Proposal(
                edits=(_edit(file, call, function, names),),
                culprit=culprit_of(
                    file, function, f"reads `{said}` when it runs: the replay finds what the last round left"
                ),
                belief=4.0 if is_seen else 2.0 if is_crash(file, call, context) else 1.0,
            )


def _function(node: ast.expr, loop: ast.AST | None, file: SourceFile) -> ast.Lambda | Function | None:
    """The function that is checkpointed, where it is written in the loop itself."""
    if isinstance(node, ast.Lambda):
        return node
    for one in walk(loop) if loop is not None and isinstance(node, ast.Name) else ():
        if (
            isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))
            and isinstance(node, ast.Name)
            and one.name == node.id
        ):
            return one if file.enclosing(one, *_LOOPS) is loop else None
    return None


def _bound_by(loop: ast.AST, scope: ast.AST) -> set[str]:
    """The names to which a loop gives another value in each round."""
    if isinstance(loop, (ast.ListComp, ast.GeneratorExp)):
        return {name.id for one in loop.generators for name in walk(one.target) if isinstance(name, ast.Name)}
    inside = set(walk(loop))
    return {one.name for one in bounds_of(scope) if one.statement in inside and not one.fills}


def _read(function: ast.Lambda | Function) -> Iterator[str]:
    """The names that a function reads and does not bind."""
    own = all_parameters(function) | {one.name for one in bounds_of(function)}
    for node in walk_scope(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in own:
            yield node.id


def _edit(file: SourceFile, call: ast.Call, function: ast.Lambda | Function, names: list[str]) -> Edit:
    passed = function.body if isinstance(function, ast.Lambda) else None
    if isinstance(passed, ast.Call) and isinstance(passed.func, ast.Name) and names == [passed.func.id]:
        arguments = function.args
        plain = [one.arg for one in arguments.args]
        given = [one.id if isinstance(one, ast.Name) else None for one in passed.args]
        if (
            given == plain
            and not passed.keywords
            and not (arguments.vararg or arguments.kwonlyargs or arguments.defaults)
        ):
            return edit_of(file, call.args[0], passed.func.id)
    return _with_defaults(file, function, names)


def _with_defaults(file: SourceFile, function: ast.Lambda | Function, names: list[str]) -> Edit:
    arguments = function.args
    parts: list[ast.AST] = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *arguments.defaults]
    parts += [one for one in (arguments.vararg, *arguments.kw_defaults) if one is not None]
    text = ", ".join(f"{name}={name}" for name in names)
    if parts:
        at = max(file.span(one)[1] for one in parts)
        return Edit(file=file.path, start=at, end=at, new=f", {text}")
    start = file.span(function)[0]
    if isinstance(function, ast.Lambda):
        at = start + len("lambda")
        return Edit(file=file.path, start=at, end=at, new=f" {text}")
    at = file.text.index("(", file.text.index(function.name, file.text.index("def", start) + 3)) + 1
    return Edit(file=file.path, start=at, end=at, new=text)
