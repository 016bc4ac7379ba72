"""Differentiates the uncompiled module where a second derivative is needed: `critic(x)` for `compiled(x)`.

A module that compiles itself (`net.compile()`) is not compiled, or runs by its `forward` there. A module that came as an
argument or an attribute is taken out of what may have compiled it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, remove_statement
from explainer.source.file import SourceFile
from explainer.source.graph.cut import asked_of_grad, asks_for
from explainer.source.name import dotted_name
from explainer.source.network.module import is_module
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, bounds_of, calls_behind, scope_of
from explainer.source.value.flow import flow_of

_DONATED = "donated buffers"  # the message also of a graph that is kept for a second loss
_OPTIONS = frozenset({"backend", "mode", "fullgraph", "dynamic", "options", "disable"})
_HOOKS = ("register_forward_hook", "register_forward_pre_hook")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each call of a compiled module whose gradient is taken with `create_graph=True`, or for what compiles it."""
    if context.has_failed and _is_of_second_derivative(context):
        yield from _calls_of_compiled(context)
        yield from _compiled_in_place(context)


def _is_of_second_derivative(context: Context) -> bool:
    """Whether what failed asked for a gradient that can be differentiated; donated buffers forbid more than that."""
    if not any(_DONATED in one.message for one in context.incident.exceptions):
        return True
    calls = [
        one for _, statement in failing_statements(context) for one in walk(statement) if isinstance(one, ast.Call)
    ]
    return any(asks_for(one, "create_graph", value=True) for one in calls)


def _compiled_in_place(context: Context) -> Iterator[Proposal]:
    """`net.compile()` of a module, where the program compiles one in that way."""
    found = [
        (file, statement)
        for file in context.program.parsed()
        for statement in file.walk()
        if isinstance(statement, ast.Expr) and _compiles_itself(statement.value, file, context)
    ]
    if len(found) == 1:
        ((file, statement),) = found
        why = "compiles a module of which a second derivative is taken"
        is_of_many = file.enclosing(statement, ast.For) is not None  # of which others may stay compiled
        yield Proposal(
            edits=(remove_statement(file, statement),),
            culprit=culprit_of(file, statement, why),
            belief=1.0 if is_of_many else 1.5,
        )


def _compiles_itself(node: ast.expr, file: SourceFile, context: Context) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "compile":
        return False
    return is_module(Value(node.func.value, file), context.program)


def _calls_of_compiled(context: Context) -> Iterator[Proposal]:
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            if not isinstance(node, ast.Call) or not names.is_call(node, "torch.autograd.grad"):
                continue
            asked = asked_of_grad(node)
            if asked is None or not asks_for(node, "create_graph", value=True):
                continue
            for call in calls_behind(asked[0], file):
                eager = _eager(call, file, context)
                belief = 2.0 if eager is not None else 1.2
                eager = eager or _eager_of_unseen(call, file, context.program)
                if eager is not None:
                    why = f"runs `{file.segment(call.func)}` compiled, which has no second derivative"
                    yield Proposal(
                        edits=(edit_of(file, call.func, eager),), culprit=culprit_of(file, call, why), belief=belief
                    )


def _eager(call: ast.Call, file: SourceFile, context: Context) -> str | None:
    """The module that was compiled under the called name; `_orig_mod` where the name was bound anew."""
    name = dotted_name(call.func)
    scopes = [scope_of(call, file), *([file.tree] if file.tree is not None else [])]
    found = [one for scope in scopes for one in bounds_of(scope) if one.name == name]
    for bound in reversed(found):
        made = bound.node
        if isinstance(made, ast.Call) and context.program.names(file).is_call(made, "torch.compile") and made.args:
            source = dotted_name(made.args[0])
            return source if source is not None and source != name else f"{name}._orig_mod"
    return None


def _eager_of_unseen(call: ast.Call, file: SourceFile, program: Program) -> str | None:
    """What runs a module eagerly whose compilation stands elsewhere: the same module, if it was not compiled at all."""
    name = dotted_name(call.func)
    if name is None or not _may_be_module(call, file, program):
        return None
    ways = _ways_of(program)
    if ways == {"call"}:
        return f'getattr({name}, "_orig_mod", {name})'
    # A plain `forward` passes by the hooks of the module.
    return f"{name}.forward" if ways == {"itself"} and not _has_hooks(program) else None


def _may_be_module(call: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether a called name is an argument or an attribute, and no function of the program."""
    if flow_of(program).target_of(call, file) is not None:
        return False
    if isinstance(call.func, ast.Name):
        function = program.names(file).function_of(call)
        is_bound = any(one.name == call.func.id for one in bounds_of(scope_of(call, file)))
        return function is not None and call.func.id in all_parameters(function) and not is_bound
    return (
        isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "self"
    )


def _ways_of(program: Program) -> set[str]:
    """How the program compiles: by a "call" of `torch.compile`, or a module "itself" by its own method."""
    found = set()
    for file in program.parsed():
        for node in file.walk():
            if not isinstance(node, ast.Call):
                continue
            if program.names(file).is_call(node, "torch.compile"):
                found |= {"call"} if node.args else {"function"}
            elif isinstance(file.parents.get(node), ast.Expr) and _is_compile(node):
                found.add("itself")
    return found


def _is_compile(node: ast.Call) -> bool:
    """Whether a call may be a module's `compile`: not that of another kind of model, which is told its loss."""
    is_named = isinstance(node.func, ast.Attribute) and node.func.attr == "compile"
    return is_named and all(one.arg is None or one.arg in _OPTIONS for one in node.keywords)


def _has_hooks(program: Program) -> bool:
    nodes = (node for file in program.parsed() for node in file.walk())
    return any(isinstance(node, ast.Attribute) and node.attr in _HOOKS for node in nodes)
