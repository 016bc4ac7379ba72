"""Detaches what a module binds to a registered buffer, or writes into it, outside of its constructor.

A buffer is state, which nobody trains. Where the step itself reads what it has written, as keys and values of a cache, the old
buffer is left behind without its graph. So is a tensor that an object of another kind makes in its constructor and fills
afterwards, once a step's backward is done: a running average, a memory bank, an ensemble of predictions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.fix.text.rewrite import put_method, under_no_grad
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

_OLD = "Take up what earlier steps left in a buffer without its graph: `self.usage = self.usage.detach().clone()`"
_OLD_BECAUSE = "this step's loss still goes back through what this step has written"
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
    """One edit for each buffer that is bound anew, and one for all of them that are written in place."""
    written: dict[str, list[ast.stmt]] = {}
    for node in statements_of(method):
        if _is_without_graph(node, file, context.program):
            continue
        bound = dotted_name(node.targets[0]) if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if bound is not None and bound.removeprefix("self.") in buffers and bound.startswith("self."):
            yield Proposal(
                edits=_edits(method, [node], bound, file, context.program),
                culprit=culprit_of(file, node, "keeps what it is given in a buffer, with its graph"),
                belief=1.2,
            )
        elif (name := _written_by(node)) is not None and name.removeprefix("self.") in buffers:
            written.setdefault(name, []).append(node)
    edits = [one for name, nodes in written.items() for one in _edits(method, nodes, name, file, context.program)]
    if edits:
        why = f"writes what has a graph into `{next(iter(written))}`, which the next step reads"
        culprit = culprit_of(file, min((one for each in written.values() for one in each), key=_line), why)
        yield Proposal(edits=tuple(dict.fromkeys(edits)), culprit=culprit, belief=1.6)
        old = tuple(
            insert_before(file, _outermost(method, nodes[0]), f"{name} = {name}.detach().clone()")
            for name, nodes in written.items()
            if _is_read_elsewhere(name, method, file)
        )
        if old and set(old) != set(edits):
            # `balance()` takes the loss of what this step's forward has written
            yield Proposal(edits=old, culprit=culprit, belief=1.4, title=_OLD, because=_OLD_BECAUSE)


def _is_read_elsewhere(name: str, method: ast.FunctionDef, file: SourceFile) -> bool:
    """Whether another method of the class, or of what holds it, reads a buffer."""
    inside = set(walk(method))
    return any(
        isinstance(one.ctx, ast.Load) and one not in inside
        for one in file.attributes.get(name.removeprefix("self."), ())
    )


def _line(statement: ast.stmt) -> int:
    return statement.lineno


def _is_without_graph(node: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a statement records nothing, or gives a value that has no graph."""
    value = getattr(node, "value", None)
    return is_without_grad(node, file, program) or (isinstance(value, ast.expr) and _is_plain(value))


def _written_by(node: ast.stmt) -> str | None:
    """The attribute that a statement writes in place: `self.k[:, at] = k`, `self.mean += x`, `self.mean.mul_(0.9).add_(x)`."""
    name = None
    if isinstance(node, ast.AugAssign):
        name = dotted_name(node.target.value if isinstance(node.target, ast.Subscript) else node.target)
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
        name = dotted_name(node.targets[0].value)
    elif isinstance(node, ast.Expr):
        call: ast.expr = node.value
        while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_"):
            call = call.func.value
            name = dotted_name(call)
    return name if name is not None and name.startswith("self.") and name.count(".") == 1 else None


def _edits(
    method: ast.FunctionDef, written: list[ast.stmt], name: str, file: SourceFile, program: Program
) -> tuple[Edit, ...]:
    """The values detached as they are kept; where this step still reads them then, the old ones where the step takes them up."""
    reading = [
        one for one in statements_of(method) if not isinstance(one, _COMPOUND) and name in reads(one, graph=False)
    ]
    is_bound = isinstance(written[0], ast.Assign) and not isinstance(written[0].targets[0], ast.Subscript)
    first, last = written[0], written[-1]
    taken_up = [one for one in reading if before(one, first) or one is first]
    if (taken_up or not is_bound) and any(before(last, one) for one in reading):
        start = _outermost(method, taken_up[0] if taken_up else first)
        old = f"{name}.detach()" if is_bound else f"{name}.detach().clone()"
        return (insert_before(file, start, f"{name} = {old}"),)
    return tuple(edit for one in written for edit in _kept_without_graph(one, file, program))


def _outermost(method: ast.FunctionDef, statement: ast.stmt) -> ast.stmt:
    """The loop of a method around a statement, all of whose rounds are one step; else the statement."""
    loops = [one for one in walk(method) if isinstance(one, (ast.For, ast.While)) and statement in walk(one)]
    return loops[0] if loops else statement


def _kept_without_graph(written: ast.stmt, file: SourceFile, program: Program) -> tuple[Edit, ...]:
    if isinstance(written, ast.Assign):
        return (put_method(file, written.value, ".detach()"),)
    return under_no_grad(file, [written], program.names(file))


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
