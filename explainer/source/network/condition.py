"""On what a program freezes parameters or switches grad mode off: the tests round it, and round the calls that lead to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.network.freeze import flag_of
from explainer.source.program import Program
from explainer.source.value.binding import Value, all_parameters, bind_call, default_of
from explainer.source.value.resolve import resolver_of

_DEPTH = 3  # calls that lead to a switch
_OFF = ("torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad")
_MODES = ("torch.set_grad_enabled", "torch.autograd.set_grad_enabled")
# Methods of transformers and of Lightning that freeze.
_LIBRARY = frozenset({"freeze", "freeze_feature_encoder", "freeze_feature_extractor", "freeze_base_model"})
_RUN_EACH_STEP = frozenset({"forward", "training_step", "__call__"})
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """An expression that switches training off where it has this truth: grad mode where `of_mode`, else flags of parameters."""

    value: Value
    is_true: bool
    of_mode: bool = False


def find_conditions(program: Program) -> tuple[Condition, ...]:
    """Every condition on which a program freezes or switches grad mode off, nearest to the failure first."""
    return program.once(_find)


def _find(program: Program) -> Iterator[Condition]:
    for file in program.parsed():
        for node in file.walk():
            if _is_context(node, file, program):
                yield from (replace(one, of_mode=True) for one in _tests(node, file, program, depth=_DEPTH))
            state = _state(node, file, program)
            of_mode = isinstance(node, ast.Call) and program.names(file).is_call(node, *_MODES, "torch.inference_mode")
            for where, site, given in _sites(state, node, file, program) if state is not None else ():
                if not isinstance(given, ast.Constant):
                    yield Condition(value=Value(given, where), is_true=False, of_mode=of_mode)
                if not isinstance(given, ast.Constant) or not given.value:
                    yield from (replace(one, of_mode=of_mode) for one in _tests(site, where, program))


def _is_context(node: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether a node is `torch.no_grad`, called or not: what stands round it decides for its own block alone."""
    is_read = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
    return is_read and program.names(file).qualified(node) in _OFF


def _state(node: ast.AST, file: SourceFile, program: Program) -> ast.expr | None:
    """What a node sets `requires_grad` or grad mode to; None for any other node."""
    names = program.names(file)
    state = flag_of(node)
    if state is not None or not isinstance(node, ast.Call):
        return state
    if names.is_call(node, *_MODES):
        return node.args[0] if node.args else next((one.value for one in node.keywords if one.arg == "mode"), None)
    if names.is_call(node, "torch.inference_mode") and node.args and not isinstance(node.args[0], ast.Constant):
        return ast.copy_location(ast.UnaryOp(op=ast.Not(), operand=node.args[0]), node)
    is_method = isinstance(node.func, ast.Attribute) and node.func.attr in _LIBRARY
    is_own = is_method and bool(program.functions_named(node.func.attr))  # type: ignore[attr-defined]
    return ast.Constant(value=False) if is_method and not is_own else None


def _sites(
    state: ast.expr, node: ast.AST, file: SourceFile, program: Program
) -> Iterator[tuple[SourceFile, ast.AST, ast.expr]]:
    """Where the state is decided: at the switch, or at the calls of a helper that is told it."""
    function = program.names(file).function_of(node)
    if not isinstance(state, ast.Name) or function is None or state.id not in all_parameters(function):
        yield file, node, state
        return
    for where, call in resolver_of(program).calls_of(function, file):
        given = bind_call(call, function, Value(call, where)).get(state.id)
        default = default_of(function, state.id)
        if given is not None:
            yield where, call, given.node
        elif default is not None:
            yield where, call, default


def _tests(node: ast.AST, file: SourceFile, program: Program, depth: int = 0) -> Iterator[Condition]:
    """The tests that lead to a node: of the branches round it, of what leaves its block before, and of the calls of its function."""
    below, above = node, file.parents.get(node)
    while above is not None and not isinstance(above, _FUNCTIONS):
        yield from _round(below, above, file)
        below, above = above, file.parents.get(above)
    if above is None or isinstance(above, ast.Lambda):
        return
    yield from _round(below, above, file)
    if depth < _DEPTH and below not in above.decorator_list and above.name not in _RUN_EACH_STEP:
        for where, call in _calls(above, file, program):
            yield from _tests(call, where, program, depth + 1)


def _calls(function: Function, file: SourceFile, program: Program) -> list[tuple[SourceFile, ast.Call]]:
    return [one for one in resolver_of(program).calls_of(function, file) if function not in one[0].around(one[1])]


def _round(below: ast.AST, above: ast.AST, file: SourceFile) -> Iterator[Condition]:
    """What must be so for a node to run, as far as the one above it says."""
    if isinstance(above, (ast.If, ast.IfExp)) and below is not above.test:
        body = above.body if isinstance(above.body, list) else [above.body]
        yield Condition(value=Value(above.test, file), is_true=below in body)
    elif isinstance(above, ast.BoolOp) and isinstance(below, ast.expr):
        for one in above.values[: above.values.index(below)]:
            yield Condition(value=Value(one, file), is_true=isinstance(above.op, ast.And))
    for name in ("body", "orelse"):
        block = getattr(above, name, None)
        before = block[: block.index(below)] if isinstance(block, list) and below in block else []
        for one in before:
            if isinstance(one, ast.If) and isinstance(one.body[-1], _LEAVES) and not one.orelse:
                yield Condition(value=Value(one.test, file), is_true=False)
