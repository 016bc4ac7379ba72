"""A forward hook that writes the module's output in place returns the new output instead: PyTorch hands that on.

`output.clamp_(-b, b)` becomes `return output.clamp(-b, b)`. Only of functions that are registered as forward hooks and as
nothing else, that bind the output to no other value and return nothing else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.write.hook_result import returned
from explainer.source.graph.alias import is_aliased
from explainer.source.graph.write import Write, find_writes
from explainer.source.hook.registration import FORWARD, find_hooks, method_of
from explainer.source.program import Program
from explainer.source.value.callee import Callee

_ALIASED = "the hook keeps the output under another name too, which would hold the old values"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each forward hook that writes its output."""
    if not context.has_failed:
        return
    program = context.program
    hooks, others = _registered(program)
    for hook, name in hooks.items():
        is_other_too = any(one.function is hook.function for one in others)
        if is_other_too or _is_called(hook, program):
            continue
        writes = [one for one in find_writes(program) if _is_in(one, hook) and _root(one.target) == name]
        edits = returned(hook, name, writes)
        if not edits:
            continue
        aliased = any(is_aliased(one, program) for one in writes)
        yield Proposal(
            edits=edits,
            culprit=culprit_of(
                hook.file, writes[0].node, f"a forward hook: writes `{name}`, the module's output, in place"
            ),
            belief=2.2,
            applicability="unsafe" if aliased else None,
            because=_ALIASED if aliased else None,
        )


def _registered(program: Program) -> tuple[dict[Callee, str], list[Callee]]:
    """The forward hooks of a program, each with the name of its output, and the functions that are other hooks."""
    found = find_hooks(program)
    hooks = {one.callee: one.output for one in found if one.output is not None}
    return hooks, [one.callee for one in found if one.method not in FORWARD]


def _is_called(hook: Callee, program: Program) -> bool:
    """Whether the program calls the hook itself too, and would drop what it returns."""
    name = getattr(hook.function, "name", None)
    calls = (node for file in program.parsed() for node in file.walk() if isinstance(node, ast.Call))
    return name is not None and any(method_of(one) == name and len(one.args) > 2 for one in calls)


def _is_in(write: Write, hook: Callee) -> bool:
    around = write.file.enclosing(write.node, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return write.file.path == hook.file.path and around is hook.function


def _root(target: ast.expr) -> str | None:
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None
