"""A module that keeps its state in an attribute starts each step without the last one's graph.

Where one step runs the module many times, its own reset method is called before each step, since a detach inside would cut
the gradients through time; else the state is detached as it is stored, or where the method takes it up.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, insert_before
from explainer.fix.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.carried import TUPLE, form_of_statement, training_loops
from explainer.source.file import SourceFile
from explainer.source.flow import Reach, flow_of
from explainer.source.lineage import before, binds, definitions, reads, statements_of, value_of
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """An attribute that a method reads before it binds it: what its last run has left."""

    name: str
    file: SourceFile
    owner: ast.ClassDef
    method: Function
    read: ast.stmt
    binding: ast.Assign


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each module that carries a differentiable attribute from call to call."""
    if not context.has_failed:
        return
    program = context.program
    states = [one for one in _states(program) if not _is_detached(one)]
    for state in states:
        same = [one for one in states if one.method is state.method]
        together = tuple(dict.fromkeys(edit for one in same for edit in _stored(one, program)))
        if state is same[0] and len(same) > 1 and not _is_repeated(state, program) and _reset_of(state) is None:
            why = f"keeps `{state.name}` with this step's graph for the next step"
            yield Proposal(edits=together, culprit=culprit_of(state.file, state.binding, why), belief=1.8)
    for state in states:
        found = list(_before_each_step(state, program))
        if not found and not _is_repeated(state, program):
            found = [edits for edits in (_stored(state, program),) if edits]
        for edits in found:
            why = f"keeps `{state.name}` with this step's graph for the next step"
            yield Proposal(edits=edits, culprit=culprit_of(state.file, state.binding, why), belief=1.4)


def _states(program: Program) -> Iterator[State]:
    for file, method in program.functions():
        owner = program.names(file).class_of(method)
        if (
            owner is None
            or method.name in ("__init__", "reset", "reset_state", "init_hidden")
            or method not in owner.body
        ):
            continue
        known: set[str] = set()
        first: dict[str, ast.stmt] = {}
        for one in statements_of(method):
            value = value_of(one)
            for name in reads(value) - known if value is not None or isinstance(one, ast.Return) else ():
                if name.startswith("self."):
                    first.setdefault(name, one)
            bound = {name for name in binds(one) if name.startswith("self.")}
            for name in sorted(bound & set(first)):
                if (
                    isinstance(one, ast.Assign)
                    and flow_of(program).reach_of(value_of(one, name) or one.value, file) != Reach.NONE
                ):
                    yield State(name=name, file=file, owner=owner, method=method, read=first.pop(name), binding=one)
            if not isinstance(file.parents.get(one), ast.If):
                known |= bound


def _is_detached(state: State) -> bool:
    """Whether the method binds the attribute to something detached already."""
    bound = [one for one in statements_of(state.method) if state.name in binds(one) and isinstance(one, ast.Assign)]
    return any(isinstance(node, ast.Attribute) and node.attr == "detach" for one in bound for node in ast.walk(one))


def _instances(state: State, program: Program) -> Iterator[tuple[SourceFile, str]]:
    """The names that hold an object of the class, where a program makes one."""
    for file in program.parsed():
        for node in file.walk():
            if not isinstance(node, ast.Assign):
                continue
            for name in binds(node):
                value = value_of(node, name)
                if (
                    isinstance(value, ast.Call)
                    and (dotted_name(value.func) or "").rpartition(".")[2] == state.owner.name
                ):
                    yield file, name


def _before_each_step(state: State, program: Program) -> Iterator[tuple[Edit, ...]]:
    """A call of the module's own reset, as the first thing that a step does with it."""
    reset = _reset_of(state)
    if reset is None:
        return
    for file, name in _instances(state, program):
        for where, loop, _ in training_loops(program):
            if where is not file or name.startswith("self."):
                continue
            calls = [one for one in loop.body if name in reads(one, graph=False)]
            # A program that resets somewhere, once an epoch, means the state to go on from step to step: only its graph must not.
            is_reset = any(
                isinstance(node, ast.Attribute) and node.attr == reset and dotted_name(node.value) == name
                for node in file.walk()
            )
            if calls and not is_reset:
                yield (insert_before(file, calls[0], f"{name}.{reset}()"),)
                return


def _reset_of(state: State) -> str | None:
    """A method without arguments that gives the attribute a new value."""
    for one in state.owner.body:
        if isinstance(one, ast.FunctionDef) and one is not state.method and one.name != "__init__":
            needed = len(one.args.args) - len(one.args.defaults)
            made = [each for each in statements_of(one) if state.name in binds(each)]
            if needed == 1 and made and not any(state.name in reads(value_of(each)) for each in made):
                return one.name
    return None


def _is_repeated(state: State, program: Program) -> bool:
    """Whether one step runs the method several times: in a loop or comprehension within the training loop's round."""
    loops = {loop for _, loop, _ in training_loops(program)}
    names = {name for _, name in _instances(state, program)}
    for file in program.parsed():
        for call in file.walk():
            if isinstance(call, ast.Call) and dotted_name(call.func) in names:
                around = file.enclosing(call, ast.For, ast.While, ast.ListComp, ast.GeneratorExp)
                if around is not None and around not in loops:
                    return True
    return False


def _stored(state: State, program: Program) -> tuple[Edit, ...]:
    """The state detached as it is stored, where nothing of this call reads it afterwards; else where the method begins."""
    file, binding = state.file, state.binding
    if file.enclosing(state.read, ast.For, ast.While, ast.FunctionDef) is not state.method:
        return _at_start(state, program, file.enclosing(state.read, ast.For, ast.While))
    later = [one for one in statements_of(state.method) if before(binding, one) and state.name in reads(one)]
    form = form_of_statement(binding, state.name, file, program)
    if later:
        return _at_start(state, program, None)
    if len(binding.targets) == 1 and dotted_name(binding.targets[0]) == state.name and form != TUPLE:
        return (put_method(file, binding.value, ".detach()"),)
    return (insert_after(file, binding, _detachment(state.name, form)),)


def _at_start(state: State, program: Program, loop: ast.AST | None) -> tuple[Edit, ...]:
    form = form_of_statement(state.binding, state.name, state.file, program)
    text = _detachment(state.name, form)
    init = next((one for one in state.owner.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    made = [one for one in statements_of(init) if state.name in binds(one)] if init else []
    value = value_of(made[-1], state.name) if made else None
    if isinstance(value, ast.Constant) and value.value is None and not _is_filled(state):
        text = f"if {state.name} is not None:\n    {text}"
    place = loop if isinstance(loop, ast.stmt) else state.read
    return (insert_before(state.file, place, text),)


def _is_filled(state: State) -> bool:
    """Whether the method gives the attribute a value before it takes it up: `if self.h is None: self.h = ...`."""
    return bool(definitions(state.name, state.read, state.method))


def _detachment(name: str, form: str) -> str:
    if form == TUPLE:
        return f"{name} = tuple(part.detach() for part in {name})"
    return f"{name} = {name}.detach()"
