"""What a name may stand for where it is written: every definition that reaches the place, also through branches and views."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.graph.operation import Operation, operation_of
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import dominates, reaching, scope_of

_DEPTH = 4
# Operations whose result has the memory, and the version counter, of their operand.
VIEWS = frozenset(
    {"View", "Transpose", "T", "Permute", "Squeeze", "Unsqueeze", "Slice", "Select", "Expand", "Chunk", "Split", "Unbind", "Narrow"}
)  # fmt: skip
_VIEW_METHODS = frozenset(
    {"view", "flatten", "unflatten", "t", "transpose", "permute", "squeeze", "unsqueeze", "narrow", "select", "movedim", "view_as"}
)  # fmt: skip
_ENDS = (ast.Return, ast.Raise)


def definitions_before(name: str, node: ast.AST, file: SourceFile) -> tuple[ast.expr | None, ...]:
    """What `name` may have been assigned before `node` in the same function; None for what the function does not show.

    An assignment in a branch that may not have run does not hide the one before it. What an in-place statement (`x += y`)
    does leaves a name the tensor that it has.
    """
    bounds = [one for one in reaching(name, node, file) if not one.fills and can_reach(one.statement, node, file)]
    found = [None if one.pick is not None or one.is_element else one.node for one in bounds]
    if not any(dominates(one.statement, node, file) for one in bounds):
        found.append(None)  # a parameter, a name of an outer scope, what a caller has set
    return tuple(each for one in found for each in _branches(one))


def _branches(value: ast.expr | None) -> Iterator[ast.expr | None]:
    """`a` and `b` of `a if test else b`."""
    if isinstance(value, ast.IfExp):
        yield from _branches(value.body)
        yield from _branches(value.orelse)
    else:
        yield value


def operations_before(
    name: str, node: ast.AST, file: SourceFile, program: Program, depth: int = 0
) -> tuple[Operation | None, ...]:
    """The operations whose result `name` may hold before `node`; None where one is not known.

    Of a view the operation that made what is viewed counts too: both have one memory.
    """
    found: list[Operation | None] = []
    for value in definitions_before(name, node, file):
        operation = operation_of(value, file, program)
        of = dotted_name(value) if operation is None else _viewed(operation)
        if operation is not None or of is None:
            found.append(operation)
        if value is not None and of is not None:
            below = operations_before(of, value, file, program, depth + 1) if depth < _DEPTH else (None,)
            found += below
    return tuple(dict.fromkeys(found))


def _viewed(operation: Operation) -> str | None:
    return dotted_name(operation.operands[0]) if operation.name in VIEWS and operation.operands else None


def can_reach(statement: ast.AST, node: ast.AST, file: SourceFile) -> bool:
    """Whether `node` can run after `statement`: not in the other branch of an `if`, nor behind the branch's `return`."""
    around = {node, *file.around(node)}
    child, above = statement, file.parents.get(statement)
    while above is not None and above not in around:
        if isinstance(above, (ast.If, ast.For, ast.While, ast.With, ast.Try)) and _leaves(child, above):
            return False
        child, above = above, file.parents.get(above)
    if isinstance(above, ast.If):
        other = above.orelse if child in above.body else above.body
        return not any(one in around for one in other) or _is_in_one_loop(statement, node, file)
    return True


def _leaves(child: ast.AST, block: ast.AST) -> bool:
    """Whether the function is always left further down in the list of statements that holds `child`."""
    for name in ("body", "orelse", "finalbody"):
        held = getattr(block, name, None) or []
        if child in held:
            return any(isinstance(one, _ENDS) for one in held[held.index(child) + 1 :])
    return False


def _is_in_one_loop(statement: ast.AST, node: ast.AST, file: SourceFile) -> bool:
    scope = scope_of(node, file)
    loops = {one for one in file.around(statement) if isinstance(one, (ast.For, ast.AsyncFor, ast.While))}
    return any(one in loops and scope_of(one, file) is scope for one in file.around(node))


def seen_through(value: ast.expr) -> tuple[str | None, bool]:
    """The name of the tensor whose memory an expression has, and whether it is a view: `x` of `x[:, 1:].flatten(1)`."""
    is_view = False
    while dotted_name(value) is None:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _VIEW_METHODS:
            value = value.func.value
        elif isinstance(value, ast.Subscript) and _is_plain_index(value.slice):
            value = value.value
        else:
            return None, is_view
        is_view = True
    return dotted_name(value), is_view


def _is_plain_index(index: ast.expr) -> bool:
    """Whether an index cuts a view: slices and numbers, where a mask or a list would make a copy."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        isinstance(one, ast.Slice) or (isinstance(one, ast.Constant) and one.value.__class__ in (int, type(None), type(...)))
        or (isinstance(one, ast.UnaryOp) and isinstance(one.operand, ast.Constant))
        for one in parts
    )  # fmt: skip
