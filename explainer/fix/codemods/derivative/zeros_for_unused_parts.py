"""Asks for zeros where a module rightly leaves a part of itself out: `grad(loss, weights, materialize_grads=True)`.

A module that chooses among its heads by an argument has no gradient for the others, and that gradient is zero. It is told only
where all that is asked for are the parameters with which the loss was computed, and no forward cuts the graph.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import add_argument
from explainer.source.file import SourceFile
from explainer.source.graph.cut import asked_of_grad
from explainer.source.name import dotted_name
from explainer.source.network.module import inherits_module, parts_of
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import bounds_of, calls_behind, reaching, scope_of
from explainer.source.value.flow import arguments_of, flow_of

_CALLS_WITH = ("torch.func.functional_call", "torch.nn.utils.stateless.functional_call")
_CUTS = frozenset({"detach", "detach_", "no_grad", "inference_mode", "data", "item", "numpy", "tolist", "enable_grad"})
_OWN = frozenset({"parameters", "named_parameters"})
_SINCE = (2, 1)


def propose(context: Context) -> Iterator[Proposal]:
    """The option for each gradient on the lines that failed."""
    program = context.program
    if not context.has_failed or _is_before(context.version("torch")) or not _leaves_parts_out(program):
        return
    for file, statement in failing_statements(context):
        for call in (one for one in walk(statement) if isinstance(one, ast.Call)):
            if not program.names(file).is_call(call, "torch.autograd.grad"):
                continue
            asked = asked_of_grad(call)
            given = {one.arg for one in call.keywords}
            if asked is None or given & {None, "allow_unused", "materialize_grads"}:
                continue
            if _is_of_its_parameters(*asked, file, program):
                yield Proposal(
                    edits=(add_argument(file, call, "materialize_grads=True"),),
                    culprit=culprit_of(file, call, "asks for the parameters of a part that this loss does not use"),
                    belief=1.5,
                )


def _is_before(version: str | None) -> bool:
    numbers = [int(one) for one in (version or "").split(".")[:2] if one.isdigit()]
    return len(numbers) == len(_SINCE) and tuple(numbers) < _SINCE


def _leaves_parts_out(program: Program) -> bool:
    """Whether a module chooses among its parts by what its forward is given, and none cuts the graph."""
    forwards = [
        (owner, method, file)
        for file in program.parsed()
        for owner in file.walk()
        if isinstance(owner, ast.ClassDef) and inherits_module(owner, file, program)
        for method in owner.body
        if isinstance(method, ast.FunctionDef) and method.name != "__init__"
    ]
    nodes = [node for _, method, _ in forwards for node in walk(method)]
    names = {one.attr for one in nodes if isinstance(one, ast.Attribute)} | {
        one.id for one in nodes if isinstance(one, ast.Name)
    }
    return not names & _CUTS and any(
        _chooses(method, set(parts_of(owner, file, program)))
        for owner, method, file in forwards
        if method.name == "forward"
    )


def _chooses(forward: ast.FunctionDef, parts: set[str]) -> bool:
    """Whether a part is taken by an argument: `self.a(h) if kind == "a" else self.b(h)`, `self.heads[kind](h)`."""
    given = {one.arg for one in (*forward.args.args, *forward.args.kwonlyargs)} - {"self"}
    for node in walk(forward):
        if isinstance(node, ast.Subscript) and _parts_in([node.value], parts) and _names_in(node.slice) & given:
            return True
        if isinstance(node, (ast.If, ast.IfExp)) and _names_in(node.test) & given:
            body, other = ([one] if isinstance(one, ast.expr) else one for one in (node.body, node.orelse))
            if _parts_in(body, parts) != _parts_in(other, parts):
                return True
    return False


def _names_in(node: ast.AST) -> set[str]:
    return {one.id for one in walk(node) if isinstance(one, ast.Name)}


def _parts_in(nodes: list[ast.stmt] | list[ast.expr], parts: set[str]) -> set[str]:
    found = (dotted_name(one) or "" for node in nodes for one in walk(node) if isinstance(one, ast.Attribute))
    return {one.removeprefix("self.") for one in found} & parts


def _is_of_its_parameters(output: ast.expr, wanted: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether what is asked for are the parameters of the module that made the output, or those that it was called with."""
    owner = _owner_of(wanted, file)
    if owner is None:
        return False
    weights = _weights_of(wanted)
    calls = list(_calls(output, file, program))
    if any(isinstance(one.func, ast.Attribute) and one.func.attr in _CUTS for one, _ in calls):
        return False
    for call, given in calls:
        if program.names(given[0]).is_call(call, *_CALLS_WITH) and len(call.args) > 1:
            name = dotted_name(call.args[1])
            if weights is not None and name is not None and given[1].get(name, name) == weights:
                return True
        elif weights is None and (name := dotted_name(call.func)) is not None and given[1].get(name, name) == owner:
            return True
    return False


def _owner_of(wanted: ast.expr, file: SourceFile) -> str | None:
    """`net`, where an expression lists its parameters: `net.parameters()`, or `w.values()` of what was made of `net`'s."""
    todo, seen = [wanted], set[str]()
    while todo:
        for node in walk(todo.pop(0)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _OWN:
                return dotted_name(node.func.value)
            if isinstance(node, ast.Name) and node.id not in seen:
                seen.add(node.id)
                todo += [one.node for one in reaching(node.id, node, file)]
    return None


def _weights_of(wanted: ast.expr) -> str | None:
    """`w` of `w.values()`, `list(w.values())`."""
    if isinstance(wanted, ast.Call) and dotted_name(wanted.func) in ("list", "tuple") and len(wanted.args) == 1:
        wanted = wanted.args[0]
    is_values = isinstance(wanted, ast.Call) and isinstance(wanted.func, ast.Attribute) and wanted.func.attr == "values"
    return dotted_name(wanted.func.value) if is_values else None  # type: ignore[attr-defined]


def _calls(
    output: ast.expr, file: SourceFile, program: Program
) -> Iterator[tuple[ast.Call, tuple[SourceFile, dict[str, str]]]]:
    """The calls behind an output, also in the program's own functions, there with the names that its parameters stand for."""
    for call in calls_behind(output, file):
        yield call, (file, {})
        target = flow_of(program).target_of(call, file)
        if target is not None:
            passed = {name: dotted_name(one) for name, one in arguments_of(call, target[1])}
            own = {one.name for one in bounds_of(target[1])}
            named = {name: one for name, one in passed.items() if one is not None and name not in own}
            for node in walk(target[1]):
                if isinstance(node, ast.Call) and scope_of(node, target[0]) is target[1]:
                    yield node, (target[0], named)
