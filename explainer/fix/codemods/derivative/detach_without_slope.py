"""`torch.unique(cells, dim=0)` becomes `torch.unique(cells.detach(), dim=0)`, where rounding made the cells: they have no slope to lose.

`torch.floor((xy - origin) / size)` keeps a graph through which nothing but zeros comes back, and `unique` has no derivative. Of
values that are not rounded the graph may be meant: the line alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters
from explainer.source.value.lineage import lineage
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_UNIQUE = {"unique_dim": "unique", "_unique2": "unique", "unique_consecutive": "unique_consecutive"}
_ROUNDS = frozenset({"floor", "round", "ceil", "trunc", "sign"})
_JOINS = frozenset({"cat", "stack", "concat", "concatenate", "hstack", "column_stack"})
_MOVES = frozenset(
    {"reshape", "view", "flatten", "t", "contiguous", "to", "float", "unsqueeze", "squeeze", "transpose"}
)
_DEPTH = 8


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each call whose operation the message names, or its line."""
    message = message_of(context)
    named = next((name for operation, name in _UNIQUE.items() if f"'{operation}'" in message), None)
    for file in context.program.parsed() if named is not None else ():
        for call in file.walk():
            given = _given(call, named or "", file, context.program) if isinstance(call, ast.Call) else None
            if given is None:
                continue
            is_flat = _is_rounded(given, file, context.program) and _has_no_slope(Value(given, file), context.program)
            if not is_flat and not provenance_of(context.program).trace(Value(given, file)).live:
                continue
            yield Proposal(
                edits=(put_method(file, given, ".detach()"),) if is_flat else (),
                culprit=culprit_of(file, call, f"takes what has a graph; `{named}` has no derivative"),
                belief=2.4 if is_flat else 1.4,
            )


def _given(call: ast.Call, name: str, file: SourceFile, program: Program) -> ast.expr | None:
    """What a call of the function or the method is given."""
    if program.names(file).is_call(call, f"torch.{name}"):
        return next((one.value for one in call.keywords if one.arg == "input"), call.args[0] if call.args else None)
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == name
    return call.func.value if is_method and isinstance(call.func, ast.Attribute) else None


def _has_no_slope(value: Value, program: Program, seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether all that a value is made of is rounded, has no graph, or is handed in: an entry of a batch, `batch["points"][:, 0]`."""
    node = _picked(value)
    if node is None or len(seen) > _DEPTH:
        return False
    if not provenance_of(program).trace(Value(node, value.file, value.arguments)).live or _is_handed_in(
        node, value.file
    ):
        return True
    seen |= {node}
    if isinstance(node, ast.Name):
        found = list(resolver_of(program).behind(Value(node, value.file, value.arguments)))
        return bool(found) and all(_picked(one) in seen or _has_no_slope(one, program, seen) for one in found)
    parts: list[ast.expr] = []
    if isinstance(node, ast.Subscript):
        parts = [node.value]
    elif isinstance(node, (ast.Tuple, ast.List)):
        parts = node.elts
    elif isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.Call) and (name := _name(node)) in _JOINS:
        parts = node.args[:1]
    elif isinstance(node, ast.Call) and name in _MOVES and isinstance(node.func, ast.Attribute):
        parts = [node.func.value]
    return bool(parts) and all(_has_no_slope(Value(one, value.file, value.arguments), program, seen) for one in parts)


def _is_rounded(given: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether something that an expression is made of, in its function, is rounded."""
    for statement in (file.statement(given), *lineage(given, file.statement(given), file, program)):
        for one in walk(statement):
            if isinstance(one, ast.Call) and _name(one) in _ROUNDS:
                return True
    return False


def _is_handed_in(node: ast.expr, file: SourceFile) -> bool:
    """Whether an expression looks an entry of a parameter up by its key."""
    function = file.enclosing(node, ast.FunctionDef)
    is_entry = (
        isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.value, ast.Name)
    )
    return is_entry and isinstance(function, ast.FunctionDef) and node.value.id in all_parameters(function)  # type: ignore[attr-defined]


def _name(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def _picked(value: Value) -> ast.expr | None:
    """The part of a tuple that a name got: `xy, cells = xy[kept], cells[kept]`."""
    if value.is_element:
        return None
    if value.pick is None:
        return value.node
    elements = value.node.elts if isinstance(value.node, (ast.Tuple, ast.List)) else []
    return elements[value.pick] if isinstance(value.pick, int) and value.pick < len(elements) else None
