"""Two views of one input, of which a predictor goes on from one and the other is held against it: SimSiam, BYOL.

What one function gives for both has no graph as the target. Two ways tell it: the loss is taken both ways, `one_way(a, b) +
one_way(b, a)`, or each view's output is both predicted from and compared with the other's prediction.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.data.run import modules_run
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import bounds_of, walk_scope
from explainer.source.value.resolve import resolver_of

_SAYS = re.compile(r"stop[-_ ]?grad|simsiam|byol|constant target", re.IGNORECASE)


def other_views(function: Function, file: SourceFile, program: Program) -> Iterator[Edit]:
    """An edit for each place that holds what the function gives against a prediction from what it gives for another view."""
    scopes: dict[Function, list[tuple[SourceFile, ast.Call]]] = {}
    for where, call in resolver_of(program).calls_of(function, file):
        around = program.names(where).function_of(call)
        if around is not None:
            scopes.setdefault(around, []).append((where, call))
    for scope, calls in scopes.items():
        yield from _in_scope(scope, calls, program)


def _in_scope(scope: Function, calls: list[tuple[SourceFile, ast.Call]], program: Program) -> Iterator[Edit]:
    fed = 0
    held: list[tuple[SourceFile, ast.expr]] = []
    both: list[tuple[SourceFile, list[ast.expr]]] = []
    names = {one.node: one.name for one in bounds_of(scope) if one.pick is None and not one.fills}
    for file, call in calls:
        name = names.get(call)
        uses = _reads(name, scope) if name is not None else [call]
        plain = [one for one in uses if not _is_fed(one, file, program)]
        if not uses:
            continue
        if len(plain) == len(uses):
            held.append((file, call))
        elif plain:
            both.append((file, plain))
        else:
            fed += 1
    if len(both) > 1 and not held and not fed:
        yield from (put_method(file, one, ".detach()") for file, plain in both for one in plain)
    elif fed and held and not both and _is_two_way(scope, calls[0][0], program):
        yield from (put_method(file, one, ".detach()") for file, one in held)


def _reads(name: str, scope: Function) -> list[ast.expr]:
    found = (one for one in walk_scope(scope) if isinstance(one, ast.Name) and one.id == name)
    return [one for one in found if isinstance(one.ctx, ast.Load)]


def _is_fed(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a module goes on from a value: `predictor(z)`."""
    for above in file.around(node):
        if isinstance(above, ast.stmt):
            return False
        is_given = isinstance(above, ast.Call) and any(node in list(walk(one)) for one in above.args)
        if is_given and isinstance(above, ast.Call) and any(modules_run(above, file, program)):
            return True
    return False


def _is_two_way(scope: Function, file: SourceFile, program: Program) -> bool:
    """Whether the loss is asked with the views in both orders, or the class around it says that one of them is constant."""
    owner = program.names(file).class_of(scope)
    if _SAYS.search(file.segment(owner if owner is not None else scope)):
        return True
    seen: set[tuple[ast.stmt, tuple[str, ...]]] = set()
    for where, call in resolver_of(program).calls_of(scope, file):
        given = tuple(where.segment(one) for one in call.args)
        if len(given) == 2 and given[0] != given[1] and (where.statement(call), given[::-1]) in seen:
            return True
        seen.add((where.statement(call), given))
    return False
