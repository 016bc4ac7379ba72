"""Statements that put a module of the program round a layer of a model: `layer.query = LoRA(layer.query)`."""

from __future__ import annotations

import ast

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.flow import arguments_of, flow_of

_DEPTH = 2


def wraps_layers(statement: ast.stmt, model: str, file: SourceFile, program: Program, depth: int = 0) -> bool:
    """Whether a statement, or a function of the program that it gives the model, replaces layers of it by what is made of them."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False  # defines, and wraps nothing yet
    roots = {model.partition(".")[0]}
    for node in walk(statement):
        if isinstance(node, ast.For) and _root(_walked(node.iter)) in roots:
            roots |= {one.id for one in walk(node.target) if isinstance(one, ast.Name)}
    for node in walk(statement):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Call):
            target, given = node.targets[0], [*node.value.args, *(one.value for one in node.value.keywords)]
            is_part = isinstance(target, (ast.Attribute, ast.Subscript)) and _root(target) in roots
            if is_part and _is_of_class(node.value) and any(ast.unparse(one) == ast.unparse(target) for one in given):
                return True
        if isinstance(node, ast.Call) and _sets_wrapped(node):
            return True
        target_of = flow_of(program).target_of(node, file) if isinstance(node, ast.Call) and depth < _DEPTH else None
        if target_of is not None and isinstance(node, ast.Call):
            where, function = target_of
            handed = [name for name, value in arguments_of(node, function) if dotted_name(value) == model]
            if handed and any(wraps_layers(one, handed[0], where, program, depth + 1) for one in function.body):
                return True
    return False


def _walked(node: ast.expr) -> ast.expr:
    """`model` of `list(model.named_modules())`, `enumerate(model.layers)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        node = node.args[0]
    return node


def _root(node: ast.expr) -> str | None:
    """The name that an expression begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _sets_wrapped(call: ast.Call) -> bool:
    """`setattr(parent, name, LoRA(layer))`."""
    is_set = dotted_name(call.func) == "setattr" and len(call.args) == 3
    value = call.args[2] if is_set else None
    return isinstance(value, ast.Call) and bool(value.args) and _is_of_class(value)


def _is_of_class(call: ast.Call) -> bool:
    """`LoRA(layer)`, `LoRA.wrap(layer)`: not `float(text)` of a setting."""
    return any(part[:1].isupper() for part in (dotted_name(call.func) or "").split("."))
