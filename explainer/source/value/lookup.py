"""Lookups in a table of rows by integers: of an embedding, a parameter, `one_hot`; and what says how many rows it has."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_TABLES = ("torch.nn.Embedding", "torch.nn.EmbeddingBag")
_HOLDERS = ("torch.nn.ModuleDict", "torch.nn.ModuleList")
_ONE_HOT = "torch.nn.functional.one_hot"
_MAKERS = ("torch.zeros", "torch.randn", "torch.empty", "torch.ones", "torch.rand")


@dataclass(frozen=True, slots=True)
class Lookup:
    """One lookup: its index, and where the table is made, with the expression that says how many rows."""

    file: SourceFile
    node: ast.expr
    table: ast.expr
    index: ast.expr
    made: Value
    rows: ast.expr


def lookup_at(node: ast.AST, file: SourceFile, program: Program) -> Lookup | None:
    """A call of an embedding, or rows taken of a parameter: with the one place that makes the table."""
    if isinstance(node, ast.Call) and program.names(file).is_call(node, _ONE_HOT):
        rows = next((one.value for one in node.keywords if one.arg == "num_classes"), None)
        rows = rows or (node.args[1] if len(node.args) > 1 else None)
        return Lookup(file, node, node.func, node.args[0], Value(node, file), rows) if rows and node.args else None
    if isinstance(node, ast.Call) and len(node.args) >= 1 and not isinstance(node.args[0], ast.Starred):
        table, index = node.func, node.args[0]
    elif isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Slice, ast.Tuple, ast.Constant)):
        table, index = node.value, node.slice
    else:
        return None
    held = resolver_of(program).constructors_of(Value(table, file))
    made = [_entry(one, program) for one in held if one.node is not node]
    found = {one.node: (one, rows) for one in made if (rows := _rows(one, program, isinstance(node, ast.Call)))}
    if len(found) != 1 or len({one.node for one in made}) != 1:
        return None
    (where, rows) = next(iter(found.values()))
    return Lookup(file, node, table, index, where, rows)


def _entry(made: Value, program: Program) -> Value:
    """What makes each entry of a list or dictionary of modules, where one expression makes them all; else what makes that."""
    call = made.node
    if not isinstance(call, ast.Call) or len(call.args) != 1 or not program.names(made.file).is_call(call, *_HOLDERS):
        return made
    inner = call.args[0]
    each = inner.value if isinstance(inner, ast.DictComp) else getattr(inner, "elt", None)
    return replace(made, node=each) if isinstance(each, ast.Call) else made


def _rows(made: Value, program: Program, is_called: bool) -> ast.expr | None:  # noqa: FBT001
    """The number of rows as the table's constructor is given it."""
    call, names = made.node, program.names(made.file)
    if not isinstance(call, ast.Call):
        return None
    if is_called:
        given = next((one.value for one in call.keywords if one.arg == "num_embeddings"), None)
        return (given or next(iter(call.args), None)) if names.is_call(call, *_TABLES) else None
    if names.is_call(call, "torch.nn.Parameter", "torch.nn.parameter.Parameter") and call.args:
        inner = next((one for one in walk(call.args[0]) if names.is_call(one, *_MAKERS)), None)
        call = inner if isinstance(inner, ast.Call) else call
    return call.args[0] if names.is_call(call, *_MAKERS) and call.args else None
