"""What a program replays as CUDA graphs: what it compiles in such a mode or with such a backend, or captures itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import Value, find_calls, walk_scope
from explainer.source.value.resolve import resolver_of

_CAPTURES = ("torch.cuda.make_graphed_callables", "torch.cuda.graphs.make_graphed_callables")
_PLAIN_MODES = frozenset({"default", "max-autotune-no-cudagraphs"})
_PLAIN_BACKENDS = frozenset({"eager", "aot_eager", "aot_eager_decomp_partition", "onnxrt", "openxla", "tvm"})
_DEPTH = 4
# What of an output has its memory: a view, the same tensor, a part of a tuple.
_SHARES = frozenset(
    {"detach", "view", "reshape", "flatten", "squeeze", "unsqueeze", "transpose", "permute", "expand", "t", "contiguous", "to", "float"}
)  # fmt: skip
_NO_MEMORY = frozenset({"shape", "dtype", "device", "ndim", "requires_grad", "grad_fn"})


def find_replays(program: Program) -> Iterator[tuple[SourceFile, ast.expr]]:
    """The calls that may replay a CUDA graph, each with what it makes of the output's own memory, and its file."""
    for file, call in find_calls(program):
        if _replays(call, file, program, _DEPTH):
            yield file, whole_of(call, file)


def whole_of(call: ast.expr, file: SourceFile) -> ast.expr:
    """The expression around a call that has the same memory: `f(x).detach()[0]`."""
    node = call
    while True:
        above = file.parents.get(node)
        method = file.parents.get(above) if isinstance(above, ast.Attribute) else None
        if isinstance(method, ast.Call) and method.func is above and isinstance(above, ast.Attribute):
            if above.attr not in _SHARES:
                return node
            node = method
        elif _is_part(above, node):
            node = above  # type: ignore[assignment]
        else:
            return node


def _is_part(above: ast.AST | None, node: ast.expr) -> bool:
    """Whether what stands around an expression is an item or a field of it."""
    if isinstance(above, ast.Subscript):
        return above.value is node
    return isinstance(above, ast.Attribute) and above.attr not in _NO_MEMORY


def _replays(call: ast.Call, file: SourceFile, program: Program, depth: int) -> bool:
    """Whether a call runs what is graphed, or a function of the program that hands on the output of such a call."""
    if _is_graphed(Value(call.func, file), program, depth):
        return True
    target = resolver_of(program).function_of(call, Value(call, file)) if depth else None
    if target is None:
        return False
    where, function = target
    return any(_is_decorated(one, where, program) for one in function.decorator_list) or any(
        isinstance(one, ast.Return) and one.value is not None and _hands_on(one.value, where, program, depth - 1)
        for one in walk_scope(function)
    )


def _hands_on(value: ast.expr, file: SourceFile, program: Program, depth: int) -> bool:
    """Whether a returned value is the output of a graphed call, or shares its memory."""
    node = value
    while isinstance(node, (ast.Call, ast.Subscript, ast.Attribute)):
        if isinstance(node, ast.Call) and depth >= 0 and _replays(node, file, program, depth):
            return True
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Attribute) or node.func.attr not in _SHARES:
                return False
            node = node.func.value
        else:
            node = node.value
    return False


def _is_graphed(value: Value, program: Program, depth: int) -> bool:
    """Whether an expression stands for a callable that is replayed as a graph."""
    node, file = value.node, value.file
    if isinstance(node, ast.Call):
        return _makes_graph(node, file, program)
    name = dotted_name(node)
    if name is None or not depth:
        return False
    if _is_compiled_in_place(name, node, file, program):
        return True
    return any(_is_graphed(one, program, depth - 1) for one in resolver_of(program).behind(value))


def _makes_graph(call: ast.Call, file: SourceFile, program: Program) -> bool:
    names = program.names(file)
    if names.is_call(call, *_CAPTURES):
        return True
    return names.is_call(call, "torch.compile") and _in_graphs(call)


def _in_graphs(call: ast.Call) -> bool:
    """Whether a compilation may make CUDA graphs: by its mode and backend, as far as these are written there."""
    given = {one.arg: getattr(one.value, "value", None) for one in call.keywords}
    return given.get("mode") not in _PLAIN_MODES and given.get("backend") not in _PLAIN_BACKENDS


def _is_compiled_in_place(name: str, node: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether `net.compile(mode=...)` is called of the module of that name, in the same function or class."""
    names = program.names(file)
    own = names.class_of(node) if name.startswith("self.") else None
    for one in file.attributes.get("compile", ()):
        call = file.parents.get(one)
        is_same = dotted_name(one.value) == name and (own is None or names.class_of(one) is own)
        if is_same and isinstance(call, ast.Call) and call.func is one and _in_graphs(call):
            return True
    return False


def _is_decorated(decorator: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a decorator compiles the function: `@torch.compile`, `@torch.compile(mode=...)`, `@partial(torch.compile, ...)`."""
    names = program.names(file)
    if names.qualified(decorator) == "torch.compile":
        return True
    if not isinstance(decorator, ast.Call):
        return False
    is_partial = bool(decorator.args) and names.qualified(decorator.args[0]) == "torch.compile"
    return (is_partial or names.is_call(decorator, "torch.compile")) and _in_graphs(decorator)
