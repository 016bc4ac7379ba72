"""A collection that is made once for several updates hands out no graph: `Rollout(ids, logp, advantages.detach(), returns)`.

Where a function detaches some of what it returns, and a loop goes backward through the rest again and again, the rest was
forgotten. Its forward is not run anew in the loop: what it collects is data of the updates.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.loop.carried import training_loops
from explainer.source.name import dotted_name
from explainer.source.tree import end_of, start_of, walk
from explainer.source.value.binding import Value, bounds_of, reaching, scope_of, walk_scope
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each function that a loop's data comes from, and that leaves a part of it with its graph."""
    if not any("a second time" in one.message for one in context.incident.exceptions):
        return
    seen: set[ast.AST] = set()
    for file, made in _made_before(context):
        target = resolver_of(context.program).function_of(made, Value(made, file))
        if target is None or target[1] in seen:
            continue
        seen.add(target[1])
        for one in walk_scope(target[1]):
            parts = _parts(one.value) if isinstance(one, ast.Return) else []
            left = [part for part in parts if _is_live(part, target[0], context)]
            if left and any(_is_detached(part, target[0]) for part in parts):
                said = ", ".join(f"`{target[0].segment(part)}`" for part in left)
                yield Proposal(
                    edits=tuple(put_method(target[0], part, ".detach()") for part in left),
                    culprit=culprit_of(target[0], one, f"hands out {said} with its graph, beside what is detached"),
                    belief=2.3,
                )


def _made_before(context: Context) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The calls that bind, before a loop that goes backward, what is read in it."""
    for file, loop, _ in training_loops(context.program):
        names = {one.id for one in walk(loop) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
        for bound in bounds_of(scope_of(loop, file)):
            is_before = end_of(bound.statement) <= start_of(loop) and bound.name in names
            if is_before and isinstance(bound.node, ast.Call) and isinstance(bound.statement, ast.Assign):
                yield file, bound.node


def _parts(value: ast.expr | None) -> list[ast.expr]:
    """What is handed out together: the parts of a tuple or dictionary, the arguments of a class."""
    if isinstance(value, (ast.Tuple, ast.List)):
        return list(value.elts)
    if isinstance(value, ast.Dict):
        return list(value.values)
    if isinstance(value, ast.Call) and (dotted_name(value.func) or "").rpartition(".")[2][:1].isupper():
        return [*value.args, *(one.value for one in value.keywords)]
    return []


def _is_live(part: ast.expr, file: SourceFile, context: Context) -> bool:
    return isinstance(part, (ast.Name, ast.Attribute)) and provenance_of(context.program).trace(Value(part, file)).live


def _is_detached(part: ast.expr, file: SourceFile) -> bool:
    """Whether a part is detached where it stands, or where its name was last bound."""
    bound = reaching(part.id, part, file)[:1] if isinstance(part, ast.Name) else []
    made = [part, *(one.node for one in bound if one.pick is None)]
    return any(
        isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "detach" for one in made
    )
