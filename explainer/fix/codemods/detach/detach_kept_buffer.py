"""Detaches what a module binds to a registered buffer outside of its constructor: a buffer is state, which nobody trains.

So is a tensor that an object of another kind makes in its constructor and fills afterwards, once a step's backward is done:
a running average, a memory bank, an ensemble of predictions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.fix.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.loop.carried import training_loops
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.callee import callees_of
from explainer.source.value.lineage import before, reads, statements_of
from explainer.source.value.resolve import resolver_of

_DETACHED = frozenset({"detach", "data"})
_COMPOUND = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.FunctionDef)
_MAKES = frozenset({"zeros", "ones", "empty", "full", "zeros_like", "ones_like", "tensor", "arange"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each `self.buffer = value` with grad mode on and a value that is not detached."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        for owner in file.walk():
            if isinstance(owner, ast.ClassDef):
                buffers = set(_buffers(owner))
                for method in owner.body if buffers else ():
                    if isinstance(method, ast.FunctionDef) and method.name != "__init__":
                        yield from _bound(method, buffers, file, context)
                yield from _filled(owner, file, context)


def _buffers(owner: ast.ClassDef) -> Iterator[str]:
    """The names that a class registers."""
    for node in walk(owner):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "register_buffer"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value)


def _bound(method: ast.FunctionDef, buffers: set[str], file: SourceFile, context: Context) -> Iterator[Proposal]:
    for node in walk(method):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or is_without_grad(node, file, context.program):
            continue
        target = node.targets[0]
        is_own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
        if is_own and target.attr in buffers and not _is_plain(node.value):  # type: ignore[attr-defined]
            yield Proposal(
                edits=_edits(method, node, f"self.{target.attr}", file),  # type: ignore[attr-defined]
                culprit=culprit_of(file, node, "keeps what it is given in a buffer, with its graph"),
                belief=1.2,
            )


def _edits(method: ast.FunctionDef, binding: ast.Assign, name: str, file: SourceFile) -> tuple[Edit, ...]:
    """The value detached as it is kept; where this step still reads it then, the old one where the step takes it up."""
    reading = [
        one for one in statements_of(method) if not isinstance(one, _COMPOUND) and name in reads(one, graph=False)
    ]
    taken_up = [one for one in reading if before(one, binding) or one is binding]
    if taken_up and any(before(binding, one) for one in reading):
        return (insert_before(file, taken_up[0], f"{name} = {name}.detach()"),)
    return (put_method(file, binding.value, ".detach()"),)


def _filled(owner: ast.ClassDef, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """What a method that runs behind the backward writes into a tensor of an object that is no module."""
    program = context.program
    names = program.names(file)
    if any(
        (names.qualified(base) or "").startswith(("torch.", "lightning.", "pytorch_lightning.")) for base in owner.bases
    ):
        return
    tensors = {
        name
        for node in walk(owner)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and names.qualified(node.value.func) in {f"torch.{one}" for one in _MAKES}
        and (name := dotted_name(node.targets[0]) or "").startswith("self.")
    }
    for method in owner.body if tensors else ():
        if not isinstance(method, ast.FunctionDef) or method.name == "__init__" or not _runs_after(method, program):
            continue
        for node in walk(method):
            if not isinstance(node, ast.Assign) or len(node.targets) != 1 or is_without_grad(node, file, program):
                continue
            target = node.targets[0].value if isinstance(node.targets[0], ast.Subscript) else node.targets[0]
            if dotted_name(target) in tensors and not _is_plain(node.value):
                why = f"keeps what it is given in `{dotted_name(target)}`, with its graph"
                edit = put_method(file, node.value, ".detach()")
                yield Proposal(
                    edits=(edit,),
                    culprit=culprit_of(file, node, why),
                    belief=1.8,
                    title="Detach what is kept for the next steps",
                )


def _runs_after(method: ast.FunctionDef, program: Program) -> bool:
    """Whether every call of a method stands behind the backward of its training loop: this step's loss reads nothing of it."""
    calls = [
        (file, call)
        for file, call in resolver_of(program).calls_named(method.name)
        if any(one.function is method for one in callees_of(call.func, file, program))
    ]
    loops = [(file, loop, step) for file, loop, step in training_loops(program)]
    return bool(calls) and all(
        any(
            where is file and call in set(walk(loop)) and before(step, file.statement(call))
            for where, loop, step in loops
        )
        for file, call in calls
    )


def _is_plain(value: ast.expr) -> bool:
    """Whether a value has no graph: detached, made anew, or a constant."""
    if isinstance(value, ast.Constant):
        return True
    if isinstance(value, ast.Attribute):
        return value.attr in _DETACHED
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return value.func.attr in _DETACHED | _MAKES or _is_plain(value.func.value)
    return False
