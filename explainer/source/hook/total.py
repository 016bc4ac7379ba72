"""Sums to which a module's own forward adds: `self.aux_loss = self.aux_loss + term`, made `0.0` where the module is."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.source.file import SourceFile
from explainer.source.hook.addition import Addition, is_of_forward
from explainer.source.loop.carried import holds_graph
from explainer.source.loop.filling import ADDS, MAKES, Use, find_uses
from explainer.source.network.module import inherits_module
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.container import SUM, Container

_VALUE_ONLY = frozenset({"item", "detach", "data", "tolist", "append"})

Total = tuple[Container, list[Addition], list[tuple[SourceFile, ast.stmt]], list[tuple[SourceFile, ast.expr, bool]]]
"""What makes the sum, what adds to it, what gives it another value, and where it is read, with its graph or without."""


def find_totals(program: Program) -> Iterator[Total]:
    """Each sum that one class makes and its own forward adds to."""
    for (kind, attribute), uses in find_uses(program).items():
        owners = {program.names(one.file).class_of(one.statement) for one in uses}
        made = [one for one in uses if one.kind == MAKES and _function(one, program) == "__init__"]
        added = [one for one in uses if one.kind == ADDS]
        if kind != "attribute" or len(owners) != 1 or len(made) != 1 or not _is_number(made[0], program):
            continue
        additions = list(_additions(added, program))
        reads = list(_reads(str(attribute), uses, program))
        if len(additions) == len(added) and not any(is_of_forward(node, file, program) for file, node, _ in reads):
            again = [(one.file, one.statement) for one in uses if one not in (*added, *made)]
            container = Container(file=made[0].file, made=made[0].value or made[0].target, form=SUM)
            yield container, additions, again, reads


def _additions(added: Sequence[Use], program: Program) -> Iterator[Addition]:
    for one in added:
        owner = program.names(one.file).class_of(one.statement)
        if owner is None or one.value is None or not isinstance(one.statement, (ast.Assign, ast.AugAssign)):
            continue
        if _function(one, program) == "forward" and inherits_module(owner, one.file, program):
            carries = holds_graph(one.value, one.statement, one.file, program)
            yield Addition(file=one.file, node=one.statement, target=one.target, by=owner, carries_graph=carries)


def _function(use: Use, program: Program) -> str:
    return getattr(program.names(use.file).function_of(use.statement), "name", "")


def _is_number(use: Use, program: Program) -> bool:
    """`0.0`, or a scalar tensor of zero; zeros of a shape are a state, which is to last."""
    value = use.value
    if isinstance(value, ast.Call) and len(value.args) == 1:
        called = program.names(use.file).qualified(value.func)
        shape = {"torch.zeros": ((), 1), "torch.tensor": (0, 0.0)}.get(called or "", ())
        return _written(value.args[0]) in shape
    return isinstance(value, ast.Constant) and isinstance(value.value, (int, float)) and value.value == 0


def _written(node: ast.expr) -> object:
    """What an expression writes: a number, or the empty tuple."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return () if not node.elts else None
    return node.value if isinstance(node, ast.Constant) else None


def _reads(attribute: str, uses: Sequence[Use], program: Program) -> Iterator[tuple[SourceFile, ast.expr, bool]]:
    own = {node for one in uses for node in walk(one.statement)}
    for file in program.parsed():
        for node in file.attributes.get(attribute, ()):
            if node not in own and isinstance(node.ctx, ast.Load):
                above = file.parents.get(node)
                yield file, node, not (isinstance(above, ast.Attribute) and above.attr in _VALUE_ONLY)
