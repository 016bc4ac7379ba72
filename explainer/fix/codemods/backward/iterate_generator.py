"""Losses that a generator yields one by one are stepped one by one: `for name, loss in agent.losses(batch)`.

`losses = dict(agent.losses(batch))` runs all forwards before the first step, after which the later losses go back through weights that
have moved.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places, message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, remove_statement
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import Value, reaching, scope_of, walk_scope
from explainer.source.value.resolve import resolver_of

_STALE = "modified by an inplace operation"
_ALL = frozenset({"dict", "list", "tuple"})
_GENERATORS = (ast.Yield, ast.YieldFrom)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for a loop on the way of the failure whose rounds take what a generator of the program has yielded before."""
    if _STALE not in message_of(context):
        return
    for file, statement in crash_places(context):
        for over in _walked(statement):
            name = over.func.value if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) else over
            if not isinstance(name, ast.Name):
                continue
            kind = "dict" if over is not name else ""
            bound = reaching(name.id, name, file)
            made = bound[0].node if len(bound) == 1 and bound[0].pick is None and not bound[0].fills else None
            if made is None or not isinstance(bound[0].statement, ast.Assign) or not _is_all(made, kind, file, context):
                continue
            assert isinstance(made, ast.Call)
            uses = [one for one in walk_scope(scope_of(name, file)) if isinstance(one, ast.Name) and one.id == name.id]
            if len(uses) == 2:  # where it is made, and the loop
                yield Proposal(
                    edits=(
                        remove_statement(file, bound[0].statement),
                        edit_of(file, over, file.segment(made.args[0])),
                    ),
                    culprit=culprit_of(
                        file, made, "computes all losses before the first step, which moves what later ones need"
                    ),
                    belief=2.6,
                    is_origin=True,
                )
                return


def _walked(statement: ast.stmt) -> Iterator[ast.expr]:
    """What the loops of a statement go over: a name, or the items of one."""
    loops = [one for one in walk(statement) if isinstance(one, (ast.comprehension, ast.For))]
    for one in (each.iter for each in loops):
        is_items = isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "items"
        if isinstance(one, ast.Name) or is_items:
            yield one


def _is_all(node: ast.expr, kind: str, file: SourceFile, context: Context) -> bool:
    """Whether an expression holds all that a generator of the program yields: `dict(losses(batch))`, `list(losses(batch))`."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return False
    word = dotted_name(node.func) or ""
    inner = node.args[0]
    if word not in _ALL or (word == "dict") != (kind == "dict") or not isinstance(inner, ast.Call):
        return False
    resolver = resolver_of(context.program)
    found = resolver.function_of(inner, Value(inner, file))
    functions = [found[1]] if found is not None else []
    if found is None and isinstance(inner.func, ast.Attribute):
        functions = [one for _, one in context.program.functions_named(inner.func.attr) if not _is_open(one)]
    return bool(functions) and all(any(isinstance(one, _GENERATORS) for one in walk_scope(each)) for each in functions)


def _is_open(function: ast.AST) -> bool:
    """Whether a method is only declared: `raise NotImplementedError`."""
    body = [one for one in getattr(function, "body", []) if not isinstance(one, ast.Expr)]
    return len(body) == 1 and isinstance(body[0], ast.Raise)
