"""The runs of modules that give what is data its graph, where the program's own code outside of modules asks for them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.graph.cut import is_leaf
from explainer.source.loop.repeated import run_in_steps
from explainer.source.network.module import inherits_module, is_module
from explainer.source.network.never_trained import is_never_trained
from explainer.source.program import Program
from explainer.source.value.binding import Value
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

# Methods of a module that compute nothing: what they give back is the module, or what it is made of.
_NO_RUN = frozenset(
    {"eval", "train", "to", "cuda", "cpu", "half", "float", "double", "requires_grad_", "apply", "state_dict", "compile"}
)  # fmt: skip
_DEPTH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A call that runs a module, by itself or by one of its methods, or a function that is handed modules to run."""

    file: SourceFile
    call: ast.Call
    modules: tuple[ast.expr, ...]

    def is_trained(self, program: Program) -> bool:
        """Whether something in the program may train one of the modules."""
        return not all(is_never_trained(Value(one, self.file), program) for one in self.modules)


def runs_behind(value: Value, program: Program, depth: int = 0) -> list[Run] | None:
    """The runs that give a value its graph, those inside of modules left out; empty where it has none.

    Of a function that a training step calls as well, its call is the run. None where the graph is given by something
    else: a parameter of its own, a module that is not known.
    """
    if depth > _DEPTH:
        return None
    trace = provenance_of(program).trace(value)
    found: list[Run] = []
    shared: set[ast.AST] = set()
    for source in trace.sources if trace.live else ():
        file = program.file_of(source)
        if file is None:
            return None
        around = program.names(file).class_of(source)
        is_within = around is not None and inherits_module(around, file, program)
        if is_within or program.names(file).function_of(source) in shared:
            continue
        if not isinstance(source, ast.Call) or is_leaf(source, file, program):
            return None
        target = resolver_of(program).function_of(source, Value(source, file))
        if target is not None and target[1] in run_in_steps(program):
            shared.add(target[1])
            modules = tuple(one for one in _given(source) if is_module(Value(one, file), program))
        else:
            source = _runs(source, file, program)
            modules = tuple(modules_run(source, file, program))
        if not modules and (target is None or target[1] in shared):
            return None
        before = _before(source, modules, file, program, depth) if modules else []
        if before is None:
            return None
        found += [Run(file=file, call=source, modules=modules), *before] if modules else []
    return found


def _runs(call: ast.Call, file: SourceFile, program: Program) -> ast.Call:
    """The call that runs a module among those of a chain: `vae.encode(x)` of `vae.encode(x).mode()`."""
    inner: ast.expr = call
    while isinstance(inner, ast.Call) and not any(True for _ in modules_run(inner, file, program)):
        inner = inner.func.value if isinstance(inner.func, ast.Attribute) else inner.func
    return inner if isinstance(inner, ast.Call) else call


def _before(
    call: ast.Call, modules: Sequence[ast.expr], file: SourceFile, program: Program, depth: int
) -> list[Run] | None:
    """The runs that gave a run's input its graph: the trace of a layer ends at the layer."""
    found: list[Run] = []
    for given in _given(call):
        before = runs_behind(Value(given, file), program, depth + 1) if given not in modules else []
        if before is None:
            return None
        found += before
    return found


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(one.value for one in call.keywords)]


def modules_run(call: ast.Call, file: SourceFile, program: Program) -> Iterator[ast.expr]:
    """The module that a call runs: what it calls, or the one whose method it is."""
    func = call.func
    owner = func.value if isinstance(func, ast.Attribute) and func.attr not in _NO_RUN else None
    module = next((one for one in (func, owner) if one is not None and is_module(Value(one, file), program)), None)
    if module is not None:
        yield module


def modules_in(sources: Iterable[ast.AST], program: Program) -> Iterator[Value]:
    """The modules that those of some nodes run which are calls, each with its file."""
    for source in sources:
        where = program.file_of(source)
        if isinstance(source, ast.Call) and where is not None:
            yield from (Value(module, where) for module in modules_run(source, where, program))
