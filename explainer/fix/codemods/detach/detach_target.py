"""`self.target = network(image)` becomes `self.target = network(image).detach()`: what each step's loss compares with is made once.

Only what a trace saw to be taken up by a loss as its target, step after step, and only where no optimizer has the weights of
the modules that make it: of others the target may be meant to be computed anew.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.model.trace import ONCE
from explainer.source.file import SourceFile
from explainer.source.loss.loss import find_losses
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.once import is_trained
from explainer.source.value.resolve import resolver_of

_WHY = "keeps the graph of a target, which the first backward uses up"
_CUTS = frozenset({"detach", "data", "item", "no_grad"})


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all targets that a trace saw."""
    edits: dict[Edit, None] = {}
    places: list[tuple[SourceFile, ast.AST]] = []
    losses = context.program.once(find_losses)
    for _, file, statement in traced_statements(ONCE, context):
        targets = [one.target for one in losses if one.file is file and file.statement(one.call) is statement]
        for target in targets:
            made = _made(target, file, context.program) if target is not None else None
            if made is None:
                return
            where, value = made
            edits[put_method(where, value, ".detach()")] = None
            places.append((where, value))
    if edits:
        yield Proposal(edits=tuple(edits), culprit=culprit_of(*places[0], _WHY), belief=2.2)


def _made(target: ast.expr, file: SourceFile, program: Program) -> tuple[SourceFile, ast.expr] | None:
    """Where the one statement that makes a target computes it: the value, or that of each element."""
    base = target
    while isinstance(base, ast.Subscript):
        base = base.value
    if dotted_name(base) is None:
        return None
    found = [one for one in resolver_of(program).behind(Value(base, file)) if one.pick is None and not one.is_element]
    if len(found) != 1 or not isinstance(found[0].statement, ast.Assign):
        return None
    value = found[0].node
    is_container = base is not target
    if isinstance(value, (ast.DictComp, ast.ListComp)) and is_container:
        value = value.value if isinstance(value, ast.DictComp) else value.elt
    elif is_container and isinstance(value, (ast.Dict, ast.List, ast.Tuple)):
        return None
    is_cut = any(isinstance(one, ast.Attribute) and one.attr in _CUTS for one in walk(value))
    if is_cut or _runs_trained(found[0].statement, found[0].file, program):
        return None
    return found[0].file, value


def _runs_trained(statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a statement runs a module whose weights an optimizer has."""
    return any(
        is_trained(made.node, program)
        for call in walk(statement)
        if isinstance(call, ast.Call)
        for made in resolver_of(program).constructors_of(Value(call.func, file))
    )
