"""`best = copy.deepcopy(model.state_dict())` for `copy.deepcopy(model)` where all that is read of the copy is its state dict.

A state dict holds the values alone, whatever else the module keeps: a pruned or normalised weight with its graph, an activation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, scope_of
from explainer.source.value.resolve import resolver_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the copy that raised, and for what reads it."""
    program = context.program
    for file, statement in list(raised_at(context))[:1]:
        for bound in bounds_of(scope_of(statement, file)):
            name, call = bound.name, bound.node
            if bound.statement is not statement or not isinstance(call, ast.Call):
                continue
            if bound.fills or bound.pick is not None or not program.names(file).is_call(call, "copy.deepcopy"):
                continue
            read = _state_dicts(name, statement, file, program)
            if not read or not call.args:
                continue
            yield Proposal(
                edits=(put_method(file, call.args[0], ".state_dict()"), *(edit_of(file, one, name) for one in read)),
                culprit=culprit_of(
                    file, call, f"copies all of `{file.segment(call.args[0])}`, whose state dict alone is read"
                ),
                belief=1.8,
            )


def _state_dicts(name: str, statement: ast.stmt, file: SourceFile, program: Program) -> list[ast.Call]:
    """The calls of `state_dict` on a name; none where anything else is done with it but to ask whether it is None."""
    owner = program.names(file).class_of(statement) if name.startswith("self.") else None
    if (owner is None and "." in name) or (owner is not None and _is_read_elsewhere(name, owner, program)):
        return []
    found = []
    for node in walk(owner if owner is not None else scope_of(statement, file)):
        if dotted_name(node) != name or not isinstance(getattr(node, "ctx", None), ast.Load):
            continue
        above = file.parents.get(node)
        call = file.parents.get(above) if isinstance(above, ast.Attribute) and above.attr == "state_dict" else None
        if isinstance(call, ast.Call) and call.func is above and not call.args and not call.keywords:
            found.append(call)
        elif not (isinstance(above, ast.Compare) and all(isinstance(one, (ast.Is, ast.IsNot)) for one in above.ops)):
            return []
    return found


def _is_read_elsewhere(name: str, owner: ast.ClassDef, program: Program) -> bool:
    """Whether another object may read the attribute: it would find a state dict in the place of a module."""
    attribute = name.removeprefix("self.")
    for file in program.parsed():
        for node in file.walk():
            if not isinstance(node, ast.Attribute) or node.attr != attribute or dotted_name(node) == name:
                continue
            classes = [one for _, one in resolver_of(program).classes_of(Value(node.value, file))]
            if owner in classes or (not classes and isinstance(node.ctx, ast.Load) and dotted_name(node.value) is None):
                return True
    return False
