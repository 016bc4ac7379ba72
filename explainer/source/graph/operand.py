"""Whether something that is written in place was read before by what keeps it for backward."""

from __future__ import annotations

import ast

from explainer.source.file import SourceFile
from explainer.source.graph.operation import SAVES_INPUT, operation_of
from explainer.source.name import bound_names
from explainer.source.program import Program
from explainer.source.tree import end_of, start_of, walk
from explainer.source.value.binding import dominates, scope_of
from explainer.source.value.definition import seen_through

_NOT_KEPT = ("append", "extend", "insert", "size", "copy_", "add", "save", "update", "log", "index_select", "gather")


def is_operand_before(name: str, node: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether an operation that keeps its operands read `name` after its last sure definition and before the write `node`.

    What the write itself computes with the old value counts too: `h += self.conv(h)`.
    """
    first = _defined(name, node, file)
    for one in walk(scope_of(node, file)):
        if not isinstance(one, ast.expr) or one is node or not first < start_of(one) < end_of(node):
            continue
        operation = operation_of(one, file, program)
        if (
            operation
            and operation.name in SAVES_INPUT
            and any(seen_through(each)[0] == name for each in operation.operands)
        ):
            return True
    return False


def calls_given(name: str, node: ast.AST, file: SourceFile, program: Program) -> list[ast.Call]:
    """The calls of the program's own modules and functions that get the tensor of `name`, or a view, before the write `node`.

    Before it is also what stands in the same loop: the round before ran it.
    """
    loops = [one for one in _loops(node, file) if not _is_bound_in(name, one, node, file)]
    first = _defined(name, node, file)
    found: list[ast.Call] = []
    for one in walk(scope_of(node, file)):
        if not isinstance(one, ast.Call) or one is node or not _may_keep(one, file, program):
            continue
        is_before = first < start_of(one) < end_of(node)
        is_round = any(loop.lineno <= one.lineno <= (loop.end_lineno or 0) for loop in loops)
        if (is_before or is_round) and any(seen_through(each)[0] == name for each in _given(one)):
            found.append(one)
    return found


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(one.value for one in call.keywords)]


def _may_keep(call: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether a call may save an argument for backward: a module, a function of the program, an operation that does."""
    called = program.names(file).qualified(call.func) or ""
    last = call.func.attr if isinstance(call.func, ast.Attribute) else called
    if not called and not isinstance(call.func, (ast.Attribute, ast.Subscript, ast.Call)):
        return False
    if last in _NOT_KEPT or last in (
        "len",
        "print",
        "isinstance",
        "zip",
        "enumerate",
        "list",
        "tuple",
        "range",
        "float",
        "int",
    ):
        return False
    if called.startswith(("torch.", "numpy.", "math.")):
        operation = operation_of(call, file, program)
        return operation is not None and operation.name in SAVES_INPUT
    return not last[:1].isupper()


def _defined(name: str, node: ast.AST, file: SourceFile) -> tuple[int, int]:
    """Where `name` was last bound for sure before `node`."""
    bound = [one for one in walk(scope_of(node, file)) if isinstance(one, ast.stmt) and name in set(bound_names(one))]
    return max(
        (start_of(one) for one in bound if end_of(one) < start_of(node) and dominates(one, node, file)), default=(0, 0)
    )


def _loops(node: ast.AST, file: SourceFile) -> list[ast.For | ast.While]:
    scope, found = scope_of(node, file), []
    above = file.parents.get(node)
    while above is not None and above is not scope:
        if isinstance(above, (ast.For, ast.While)):
            found.append(above)
        above = file.parents.get(above)
    return found


def _is_bound_in(name: str, loop: ast.For | ast.While, node: ast.AST, file: SourceFile) -> bool:
    """Whether each round of a loop gives `name` a new tensor before it writes it."""
    inside = [one for one in walk(loop) if isinstance(one, ast.stmt) and not isinstance(one, ast.AugAssign)]
    return any(
        name in set(bound_names(one)) and end_of(one) < start_of(node) and dominates(one, node, file) for one in inside
    )
