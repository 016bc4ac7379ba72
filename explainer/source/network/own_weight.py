"""Weights that a module writes in its own forward, without grad: a clamp, a norm, a factor, in `forward`, a method of it, or a hook."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.hook.registration import FORWARD, FORWARD_PRE, find_hooks
from explainer.source.name import Function, dotted_name
from explainer.source.network.follower import followers
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import walk_scope

_WEIGHTS = frozenset({"weight", "bias"})
_ITERATES = frozenset({"parameters", "named_parameters"})


def rewritten_in_forward(program: Program) -> tuple[tuple[SourceFile, ast.Expr], ...]:
    """The statements that write weights in place, without grad, wherever their module runs; each with its file."""
    return program.once(_rewritten)


def _rewritten(program: Program) -> Iterator[tuple[SourceFile, ast.Expr]]:
    for file, function in _run_in_forward(program):
        for node in walk_scope(function):
            target = _written(node)
            if (
                isinstance(node, ast.Expr)
                and target is not None
                and _is_weight(target, file)
                and is_without_grad(node, file, program)
                and next(iter(followers(node, file, program)), None) is None
            ):
                yield file, node


def _run_in_forward(program: Program) -> Iterator[tuple[SourceFile, Function]]:
    """Each `forward`, the methods that one calls by `self`, and the hooks of forwards."""
    for file in program.parsed():
        for owner in program.names(file).classes.values():
            methods = {one.name: one for one in owner.body if isinstance(one, ast.FunctionDef)}
            forward = methods.get("forward")
            if forward is None:
                continue
            yield file, forward
            called = {dotted_name(one.func) for one in walk(forward) if isinstance(one, ast.Call)}
            yield from ((file, one) for name, one in methods.items() if f"self.{name}" in called and one is not forward)
    for hook in find_hooks(program):
        function = hook.callee.function
        if hook.method in FORWARD | FORWARD_PRE and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield hook.callee.file, function


def _written(node: ast.AST) -> ast.expr | None:
    """What the methods of a statement write: `layer.weight` of `layer.weight.mul_(a).clamp_(min=0)`."""
    call = node.value if isinstance(node, ast.Expr) else None
    target: ast.expr | None = None
    while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_"):
        call = target = call.func.value
    return target


def _is_weight(target: ast.expr, file: SourceFile) -> bool:
    """Whether an expression is called a weight, or is what a loop over parameters hands out."""
    name = dotted_name(target) or ""
    if name.rpartition(".")[2] in _WEIGHTS and "." in name:
        return True
    loop = file.enclosing(target, ast.For)
    if not isinstance(loop, ast.For) or name not in {one.id for one in walk(loop.target) if isinstance(one, ast.Name)}:
        return False
    return any(isinstance(one, ast.Attribute) and one.attr in _WEIGHTS | _ITERATES for one in walk(loop.iter))
