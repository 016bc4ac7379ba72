"""`net.train()` at the head of the training, where an evaluation elsewhere left the model in eval mode.

The evaluation is a function, a method or an object that is called, of any file, and knows the model by another name. A model
that nobody trains, or that is put into eval mode on purpose, stays there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.crash import message_of
from explainer.fix.clue.failure import is_in_frames
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.source.file import SourceFile
from explainer.source.loop.backward import Backward, find_backwards
from explainer.source.name import dotted_name
from explainer.source.network.module import trained_constructors
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Scope, Value, bounds_of, scope_of, walk_scope
from explainer.source.value.callee import callees_of
from explainer.source.value.lineage import before, lineage, loops_of, value_of
from explainer.source.value.resolve import resolver_of

_REFUSED = "can only be called in training mode"
_ON_PURPOSE = re.compile(r"freez|frozen|fixed|attack|adversar|saliency|attribut", re.IGNORECASE)
_DEPTH = 3


@dataclass(frozen=True)
class _Switch:
    """A call that puts a model into eval mode, the scope around it, and the calls that made the model."""

    file: SourceFile
    call: ast.Call
    scope: Scope
    made: frozenset[ast.AST]


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each model of the failed training that something else put into eval mode."""
    if _REFUSED not in message_of(context):
        return
    program = context.program
    switches = list(_switches(program))
    for backward in find_backwards(program) if switches else ():
        file, scope = backward.file, scope_of(backward.call, backward.file)
        is_failed = is_in_frames(backward.call, file, context) and not isinstance(scope, ast.Lambda)
        if not is_failed or not _is_training(scope, file, program):
            continue
        for name, switch, forward in _asleep(backward, scope, switches, program):
            place = _place(name, forward, backward, switches, program)
            if place is not None:
                yield Proposal(
                    edits=(insert_before(file, place, f"{name}.train()"),),
                    culprit=culprit_of(
                        switch.file, switch.call, "puts the model into eval mode, in which it is then trained"
                    ),
                    belief=2.0,
                    title=f"Put the model back into train mode before it is trained: `{name}.train()`",
                    is_origin=True,
                )


def _switches(program: Program) -> Iterator[_Switch]:
    """The calls that put a trained model into eval mode to evaluate it."""
    trained = trained_constructors(program)
    for file in program.parsed():
        for node in file.walk():
            func = node.func if isinstance(node, ast.Call) else None
            if not isinstance(node, ast.Call) or not isinstance(func, ast.Attribute) or not _is_eval(node, func):
                continue
            made = resolver_of(program).constructors_of(Value(func.value, file))
            found = frozenset(one.node for one in made)
            found = found & trained if trained else found
            scope = scope_of(node, file)
            if found and not _is_meant(node, scope, file) and not _is_undone(node, scope, file):
                yield _Switch(file, node, scope, found)


def _is_eval(call: ast.Call, func: ast.Attribute) -> bool:
    """`net.eval()`, `net.train(False)`."""
    given = [*call.args, *(one.value for one in call.keywords)]
    if func.attr == "eval":
        return not given
    return func.attr == "train" and len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value is False


def _is_meant(call: ast.Call, scope: Scope, file: SourceFile) -> bool:
    """Whether a model is to stay in eval mode: by the words around, in its own `train`, or with what freezes it."""
    name = getattr(scope, "name", "")
    above = file.enclosing(call, ast.If)
    if name == "train" or _ON_PURPOSE.search(name):
        return True
    if isinstance(above, ast.If) and _ON_PURPOSE.search(file.segment(above.test)):
        return True
    return any(one.attr == "requires_grad_" for one in _methods(_owner(call), scope))


def _is_undone(call: ast.Call, scope: Scope, file: SourceFile) -> bool:
    """Whether the same function puts the model back: `net.train()`, `net.train(was_training)`."""
    return any(
        one.attr == "train" and one.lineno > call.lineno and file.parents.get(one) is not call
        for one in _methods(_owner(call), scope)
    )


def _owner(call: ast.Call) -> str:
    assert isinstance(call.func, ast.Attribute)
    return dotted_name(call.func.value) or "?"


def _methods(name: str, scope: ast.AST) -> Iterator[ast.Attribute]:
    """The methods that a scope calls of a name."""
    for node in walk_scope(scope):
        func = node.func if isinstance(node, ast.Call) else None
        if isinstance(func, ast.Attribute) and dotted_name(func.value) == name:
            yield func


def _is_training(scope: Scope, file: SourceFile, program: Program, depth: int = 1) -> bool:
    """Whether a scope, or one that calls it, steps an optimizer: not one that looks at the gradients of its inputs."""
    calls = (node.func for node in walk_scope(scope) if isinstance(node, ast.Call))
    if any(isinstance(one, ast.Attribute) and one.attr == "step" for one in calls):
        return True
    if not depth or not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    around = ((where, scope_of(call, where)) for where, call in resolver_of(program).calls_of(scope, file))
    return any(_is_training(one, where, program, depth - 1) for where, one in around)


def _asleep(
    backward: Backward, scope: Scope, switches: list[_Switch], program: Program
) -> Iterator[tuple[str, _Switch, ast.stmt]]:
    """The models of a loss that are put into eval mode elsewhere: the name of each, where, and the statement that runs it."""
    file, seen = backward.file, set[str]()
    for statement in (*lineage(backward.loss, backward.statement, file, program), backward.statement):
        for node in _named(statement, scope, file, program):
            name = dotted_name(node)
            if name is None or name in seen:
                continue
            made = {one.node for one in resolver_of(program).constructors_of(Value(node, file))}
            switch = next((one for one in switches if made & one.made and one.scope is not scope), None)
            if switch is not None:
                seen.add(name)
                yield name, switch, statement


def _named(statement: ast.stmt, scope: Scope, file: SourceFile, program: Program) -> Iterator[ast.expr]:
    """What a statement reads by name, and what the methods of the same object that it calls read of it."""
    owner = program.names(file).class_of(scope)
    for node in walk(value_of(statement) or statement):  # of a loop what it goes over
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            yield node
        if not isinstance(node, ast.Call) or not (dotted_name(node.func) or "").startswith("self."):
            continue
        target = resolver_of(program).function_of(node, Value(node, file))
        if target is not None and target[0] is file and program.names(file).class_of(target[1]) is owner:
            own = (one for one in walk(target[1]) if isinstance(one, ast.Attribute))
            yield from (one for one in own if (dotted_name(one) or "").startswith("self."))


def _place(
    name: str, forward: ast.stmt, backward: Backward, switches: list[_Switch], program: Program
) -> ast.stmt | None:
    """The statement before which the model goes into train mode: the outermost loop in which nothing evaluates it.

    None where it does so already.
    """
    file = backward.file
    scope = scope_of(backward.call, file)
    root = name.partition(".")[0]
    bound = {one.statement for one in bounds_of(scope) if one.name == root}
    place, region = forward, scope
    for loop in loops_of(forward, file):
        if _evaluates(loop, file, switches, program):
            region = loop  # type: ignore[assignment]
            break
        if bound & set(walk(loop)):
            break
        place = loop
    calls = (node for node in walk(region) if isinstance(node, ast.Call) and dotted_name(node.func) == f"{name}.train")
    return None if any(before(file.statement(one), forward) for one in calls) else place


def _evaluates(node: ast.AST, file: SourceFile, switches: list[_Switch], program: Program, depth: int = _DEPTH) -> bool:
    """Whether what runs in a node puts a model into eval mode."""
    calls = {id(one.call) for one in switches}
    for call in walk(node):
        if not isinstance(call, ast.Call):
            continue
        if id(call) in calls:
            return True
        for one in callees_of(call.func, file, program) if depth else ():
            if _evaluates(one.function, one.file, switches, program, depth - 1):
                return True
    return False
