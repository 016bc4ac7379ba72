"""A pool or memory that a later step reads keeps tensors without the graph of their step: `self.store.append((z.detach(), y))`.

Where a trace saw the tensors of a pool taken up with the graph of an earlier step, every method that fills it detaches what
was computed from weights; the step that computed it goes on with its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.graph.detachment import CUTS, PUTS
from explainer.fix.text.rewrite import put_method
from explainer.model.trace import TAKEN
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.flow import arguments_of
from explainer.source.value.lineage import statements_of
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_WHY = "puts tensors with the graph of their step into `{}`, which a later step reads"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each pool of a class whose method a trace saw reading an earlier step's graph."""
    program = context.program
    seen: set[tuple[ast.ClassDef, str]] = set()
    for _, file, statement in traced_statements(TAKEN, context):
        owner, function = program.names(file).class_of(statement), program.names(file).function_of(statement)
        if owner is None or function is None:
            continue
        for name in sorted({read for node in walk(function) if (read := _own_attribute(node)) is not None}):
            if (owner, name) in seen:
                continue
            seen.add((owner, name))
            filled = list(_filled(name, owner, file, program))
            if filled:
                yield Proposal(
                    edits=tuple(put_method(file, value, ".detach()") for _, value in filled),
                    culprit=culprit_of(file, filled[0][0], _WHY.format(name)),
                    belief=2.4,
                )


def _own_attribute(node: ast.AST) -> str | None:
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return dotted_name(node) if is_own else None


def _filled(name: str, owner: ast.ClassDef, file: SourceFile, program: Program) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """What the methods of a class put into a container of its own and what of that has a graph, each with its statement."""
    for method in owner.body:
        if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) or method.name == "__init__":
            continue
        for statement in statements_of(method):
            value = _put(statement, name)
            if value is None or any(isinstance(one, ast.Attribute) and one.attr in CUTS for one in walk(value)):
                continue
            for part in value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]:
                if _has_graph(part, method, file, program):
                    yield statement, part


def _put(statement: ast.stmt, name: str) -> ast.expr | None:
    """What a statement puts into a container: `self.images.append(image)`, `self.images[k] = image`, `self.images[k].append(image)`."""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return statement.value if _container(statement.targets[0]) == name else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
        return None
    return call.args[-1] if call.func.attr in PUTS and _container(call.func.value) == name else None


def _container(node: ast.expr) -> str | None:
    """The container that an entry belongs to: `self.history` of `self.history["loss"]`, of `self.history.setdefault(key, [])`."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        if isinstance(node, ast.Call) and node.func.attr != "setdefault":  # type: ignore[attr-defined]
            return None
        node = node.value if isinstance(node, ast.Subscript) else node.func.value  # type: ignore[attr-defined]
    return dotted_name(node)


def _has_graph(
    value: ast.expr, method: ast.FunctionDef | ast.AsyncFunctionDef, file: SourceFile, program: Program
) -> bool:
    """Whether a value is computed from weights, here or by a caller that hands it over."""
    provenance = provenance_of(program)
    if provenance.trace(Value(value, file)).live:
        return True
    for where, call in resolver_of(program).calls_of(method, file):
        given = dict(arguments_of(call, method)).get(dotted_name(value) or "")
        if given is not None and provenance.trace(Value(given, where)).live:
            return True
    return False
