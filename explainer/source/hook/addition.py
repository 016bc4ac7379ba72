"""What a forward adds to lists: `self.outputs[name].append(output)` in a hook, `self.aux.append(term)` in a module's own `forward`.

In the function itself or in one that it calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.hook.registration import Hook, find_hooks
from explainer.source.name import Function
from explainer.source.network.module import inherits_module
from explainer.source.program import Program
from explainer.source.value.binding import Value, all_parameters, bind_call, walk_scope
from explainer.source.value.callee import callees_of
from explainer.source.value.lineage import binds, reads, root_of, value_of

_GROWS = frozenset({"append", "extend"})
_DEPTH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """What adds to the list, or the sum, that `target` names something made of what a hook or a forward was given, with its graph or without.

    `by` is the hook, or the class of the module whose forward it is.
    """

    file: SourceFile
    node: ast.Call | ast.AugAssign | ast.Assign
    target: ast.expr
    by: Hook | ast.ClassDef
    carries_graph: bool


@dataclass(frozen=True, slots=True)
class _Known:
    """The names of a function that hold what a hook was given: with its graph, and in any form."""

    graph: frozenset[str]
    given: frozenset[str]

    def of(self, value: ast.expr, *, is_cut: bool) -> tuple[bool, bool]:
        """Whether a value has what a hook was given with its graph, and whether it has it in any form."""
        is_given = bool(reads(value, graph=False) & self.given)
        return is_given and not is_cut and bool(reads(value) & self.graph), is_given

    def behind(self, names: set[str], *, graph: bool, given: bool) -> _Known:
        """What is known once some names have got another value."""
        return _Known(
            self.graph | names if graph else self.graph - names, self.given | names if given else self.given - names
        )


def find_additions(program: Program) -> tuple[Addition, ...]:
    """All that the forward hooks and the modules of a program add to lists, each once."""
    return program.once(_additions)


def _additions(program: Program) -> Iterator[Addition]:
    told: set[ast.AST] = set()
    for by, function, where, names in (*_hooks(program), *_forwards(program)):
        for file, node, carries in _in_function(function, where, _Known(names, names), program, 0):
            if node not in told:
                told.add(node)
                target = node.target if isinstance(node, ast.AugAssign) else node.func.value  # type: ignore[attr-defined]
                if isinstance(by, ast.ClassDef) and not (root_of(target) or "").startswith("self."):
                    continue  # a list of one forward
                yield Addition(file=file, node=node, target=target, by=by, carries_graph=carries)


_Run = tuple[Hook | ast.ClassDef, Function | ast.Lambda, SourceFile, frozenset[str]]


def _hooks(program: Program) -> Iterator[_Run]:
    """Each forward hook with the names of its parameters."""
    for hook in find_hooks(program):
        names = frozenset(name for name in (hook.output, hook.inputs) if name is not None)
        yield hook, hook.callee.function, hook.callee.file, names


def _forwards(program: Program) -> Iterator[_Run]:
    """Each module's own forward with the names of its parameters."""
    for file, function in program.functions_named("forward"):
        owner = program.names(file).class_of(function)
        if owner is not None and file.parents.get(function) is owner and inherits_module(owner, file, program):
            yield owner, function, file, frozenset(all_parameters(function) - {"self"})


_Found = tuple[SourceFile, ast.Call | ast.AugAssign, bool]


def _in_function(
    function: Function | ast.Lambda, file: SourceFile, known: _Known, program: Program, depth: int
) -> Iterator[_Found]:
    """What a function adds to lists of the values behind some of its names, and what the functions that it calls do."""
    for node in walk_scope(function):
        if not isinstance(node, (ast.stmt, ast.Call)):
            continue
        bound = binds(node) if isinstance(node, ast.stmt) and not isinstance(node, ast.AugAssign) else set()
        value = value_of(node) if bound and isinstance(node, ast.stmt) else None
        if value is not None:
            graph, given = known.of(value, is_cut=is_without_grad(node, file, program))
            known = known.behind(bound, graph=graph, given=given)
        if not isinstance(node, (ast.Call, ast.AugAssign)):
            continue
        added = _added(node)
        is_given = added is not None and known.of(added, is_cut=True)[1]
        if added is not None and is_given:
            carries, _ = known.of(added, is_cut=is_without_grad(node, file, program))
            yield file, node, carries
        elif isinstance(node, ast.Call) and depth < _DEPTH:
            yield from _in_called(node, file, known, program, depth)


def _in_called(call: ast.Call, file: SourceFile, known: _Known, program: Program, depth: int) -> Iterator[_Found]:
    is_cut = is_without_grad(call, file, program)
    given = [*call.args, *(one.value for one in call.keywords)]
    for one in callees_of(call.func, file, program) if any(known.of(each, is_cut=is_cut)[1] for each in given) else ():
        bound = bind_call(call, one.function, Value(call, file))
        held = {name: known.of(value.node, is_cut=is_cut) for name, value in bound.items()}
        inner = _Known(
            frozenset(name for name, (graph, _) in held.items() if graph),
            frozenset(name for name, (_, is_given) in held.items() if is_given),
        )
        if inner.given:
            yield from _in_function(one.function, one.file, inner, program, depth + 1)


def _added(node: ast.Call | ast.AugAssign) -> ast.expr | None:
    """What a node adds to a list: `output` of `xs.append(output)`, `[output]` of `xs += [output]`."""
    if isinstance(node, ast.AugAssign):
        return node.value if isinstance(node.op, ast.Add) and isinstance(node.value, (ast.List, ast.Tuple)) else None
    is_filling = isinstance(node.func, ast.Attribute) and node.func.attr in _GROWS and len(node.args) == 1
    return node.args[0] if is_filling else None


def is_of_forward(node: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether a forward reads what it has collected: that is a state, which is to last from step to step."""
    function = program.names(file).function_of(node)
    return function is not None and function.name == "forward"
