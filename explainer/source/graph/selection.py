"""Values that are thrown away after they were computed: the branch of a `where`, what a mask multiplies, fills or indexes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.sign import value_of

# What keeps every element in its place.
ELEMENTWISE = frozenset(
    {"log", "log2", "log10", "log1p", "exp", "expm1", "sqrt", "rsqrt", "pow", "square", "abs", "neg", "sin", "cos", "tanh", "sigmoid"}
    | {"acos", "asin", "float", "double", "half", "to", "clamp", "clamp_min", "clamp_max", "mul", "add", "sub", "div", "reciprocal"}
    | {"nan_to_num", "relu", "softplus"}
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """`condition` keeps a value where it is true, or, if not `keeps`, where it is false. `node` is the expression that selects."""

    condition: str
    keeps: bool
    node: ast.expr
    how: str


def selection_of(node: ast.expr, file: SourceFile, program: Program) -> Selection | None:
    """What throws parts of a value away after it was computed, also where the value has a name in between; None where nothing does."""
    below: ast.AST = node
    above = file.parents.get(node)
    while isinstance(above, (ast.expr, ast.keyword)):
        found = _selects(above, below, file, program)
        if found is not None:
            return found
        if not _is_elementwise(above, program, file):
            return None
        below, above = above, file.parents.get(above)
    if isinstance(above, ast.Assign) and above.value is below:
        return _of_name(above, file, program)
    return None


def _is_elementwise(node: ast.AST, program: Program, file: SourceFile) -> bool:
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Attribute)):
        return True
    if not isinstance(node, ast.Call):
        return False
    called = program.names(file).qualified(node.func) or ""
    last = node.func.attr if isinstance(node.func, ast.Attribute) else called.rpartition(".")[2]
    return last in ELEMENTWISE


def _selects(above: ast.AST, below: ast.AST, file: SourceFile, program: Program) -> Selection | None:
    if isinstance(above, ast.Call):
        return _of_call(above, below, file, program)
    if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mult):
        other = above.left if above.right is below else above.right
        mask = mask_text(other, file, program)
        return (
            Selection(condition=mask, keeps=True, node=above, how="is multiplied by a mask afterwards")
            if mask
            else None
        )
    return None


def _of_call(above: ast.Call, below: ast.AST, file: SourceFile, program: Program) -> Selection | None:
    names = program.names(file)
    called = names.qualified(above.func) or ""
    if called == "torch.where" and len(above.args) == 3 and below in above.args[1:]:
        keeps = below is above.args[1]
        return Selection(
            condition=file.segment(above.args[0]), keeps=keeps, node=above, how="stands in a branch of `torch.where`"
        )
    method = above.func.attr if isinstance(above.func, ast.Attribute) else ""
    if method == "masked_fill" and above.args:
        at = 1 if called == "torch.masked_fill" else 0
        subject = above.args[0] if at else above.func
        if below is subject and len(above.args) > at:
            text = file.segment(above.args[at])
            return Selection(condition=text, keeps=False, node=above, how="is overwritten by `masked_fill` afterwards")
    return None


def mask_text(node: ast.expr, file: SourceFile, program: Program) -> str | None:
    """The condition that a mask stands for: itself where it is a comparison, `mask > 0` where it was made a number."""
    if isinstance(node, ast.Compare):
        return f"({file.segment(node)})" if not _has_parens(node, file) else file.segment(node)
    if not value_of(node, file, program).counts or not isinstance(node, (ast.Name, ast.Attribute, ast.Call)):
        return None
    text = file.segment(node)
    if text.endswith((".float()", ".double()", ".half()")) and isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Attribute)
        return file.segment(node.func.value)
    return f"{text} > 0"


def _has_parens(node: ast.expr, file: SourceFile) -> bool:
    start, end = file.span(node)
    return start > 0 and file.text[start - 1] == "(" and file.text[end : end + 1] == ")"


def _of_name(statement: ast.Assign, file: SourceFile, program: Program) -> Selection | None:
    """The one selection that every later use of an assigned value stands in, where its condition was known before."""
    name = dotted_name(statement.targets[0])
    scope = program.names(file).function_of(statement) or file.tree
    if name is None or scope is None or len(statement.targets) > 1 or name.startswith("self."):
        return None
    uses = list(_uses(name, statement, scope))
    found = [_selection_at(one, file, program) for one in uses]
    first = found[0] if found else None
    if first is None or any(
        one is None or (one.condition, one.keeps) != (first.condition, first.keeps) for one in found
    ):
        return None
    return first if _is_known_before(first.condition, statement, scope) else None


def _selection_at(use: ast.expr, file: SourceFile, program: Program) -> Selection | None:
    """Only a selection in the same expression: names are followed once."""
    below: ast.AST = use
    above = file.parents.get(use)
    while isinstance(above, ast.expr):
        found = _selects(above, below, file, program)
        if found is not None:
            return found
        if not _is_elementwise(above, program, file):
            return None
        below, above = above, file.parents.get(above)
    return None


def _uses(name: str, statement: ast.stmt, scope: ast.AST) -> Iterator[ast.expr]:
    end = statement.end_lineno or statement.lineno
    for node in walk(scope):
        is_read = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
        if is_read and isinstance(node, ast.expr) and dotted_name(node) == name and node.lineno > end:
            yield node


def _is_known_before(condition: str, statement: ast.stmt, scope: ast.AST) -> bool:
    """Whether the names of a condition have, at a statement, the values that they have later."""
    wanted = {node.id for node in walk(ast.parse(condition.strip(), mode="eval")) if isinstance(node, ast.Name)}
    later = {
        name
        for node in walk(scope)
        if isinstance(node, ast.stmt) and node.lineno >= statement.lineno
        for name in bound_names(node)
    }
    return not wanted & later
