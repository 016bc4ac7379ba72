"""A module that keeps its state in an attribute starts each step without the last one's graph.

Where one step runs the module many times, its own reset method is called before each step, since a detach inside would cut
the gradients through time; else the state is detached as it is stored, or where the method takes it up.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, insert_before
from explainer.fix.graph.detachment import detached, detached_form, nesting_kept
from explainer.fix.graph.number_start import (
    cut_where_stored,
    is_made_anew,
    keys_are_given,
    starts_as_numbers,
    stores_graph,
    without_graphs,
)
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.loop.backward import find_backwards
from explainer.source.loop.carried import form_of_statement, training_loops
from explainer.source.loop.pile import find_piles
from explainer.source.loop.repeated import is_run_again
from explainer.source.loop.step import OPTIMIZER_STEP, SCALER_STEP, find_acts
from explainer.source.loop.update import end_of_step, find_turns
from explainer.source.name import Function, bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.entry import has_graph
from explainer.source.value.instance import names_of
from explainer.source.value.lineage import (
    before,
    binds,
    changes,
    definitions,
    loops_of,
    reads,
    scope_of,
    statements_of,
    value_of,
)
from explainer.source.value.nesting import Nesting, nesting_of
from explainer.source.value.provenance import provenance_of


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
    piled = {use.statement for pile in find_piles(program) for use in pile.added}
    kept = (one for one in _states(program) if not _is_detached(one) and one.binding not in piled)
    states = [one for one in kept if not _starts_as_numbers(one, program) or _takes_graphs(one, program)]
    for state in states:
        same = [one for one in states if one.method is state.method]
        together = tuple(
            dict.fromkeys(edit for one in same for edit in _where_number_was(one, program) or _stored(one, program))
        )
        is_plain = not _is_repeated(state, program) and _loop_round(state) is None and _reset_of(state) is None
        if state is same[0] and len(same) > 1 and is_plain:
            why = f"keeps `{state.name}` with this step's graph for the next step"
            yield Proposal(edits=together, culprit=culprit_of(state.file, state.binding, why), belief=1.8)
    for state in states:
        cut = _where_number_was(state, program)
        if cut:
            why = f"keeps `{state.name}` with this step's graph for the next step"
            yield Proposal(edits=cut, culprit=culprit_of(state.file, state.binding, why), belief=1.4)
            continue
        found = list(_before_each_step(state, program))
        loop = None if _goes_back(state, program) else _loop_round(state)
        if loop is not None:
            found = [edits for edits in (_at_start(state, program, loop),) if edits]
        elif not found and not _is_repeated(state, program):
            found = [edits for edits in (_stored(state, program),) if edits]
        elif not found:
            same = [one for one in states if one.owner is state.owner]
            found = [edits for edits in (_between_steps(same, program),) if edits and state is same[0]]
        for edits in found:
            why = f"keeps `{state.name}` with this step's graph for the next step"
            yield Proposal(edits=edits, culprit=culprit_of(state.file, state.binding, why), belief=1.4)
        for edits in _before_each_step(state, program, is_reset_elsewhere=True):
            why = (
                f"keeps `{state.name}` with this step's graph, and is reset more seldom than a backward goes through it"
            )
            yield Proposal(
                edits=edits, culprit=culprit_of(state.file, state.binding, why), belief=0.2,
                title="Reset it for each backward",
                because="right where every backward is to begin from the reset state, as the tasks of a meta step do",
            )  # fmt: skip


def _states(program: Program) -> Iterator[State]:
    for file, method in program.functions():
        owner = program.names(file).class_of(method)
        if (
            owner is None
            or method.name in ("__init__", "reset", "reset_state", "init_hidden")
            or method not in owner.body
        ):
            continue
        known = {name for node in walk(owner) if isinstance(node, ast.Call) and (name := dotted_name(node.func))}
        first: dict[str, ast.stmt] = {}  # what is called is a module or a function, no tensor
        for one in statements_of(method):
            value = value_of(one)
            for name in reads(value) - known if value is not None or isinstance(one, ast.Return) else ():
                if name.startswith("self."):
                    first.setdefault(name, one)
            bound = {name for name in binds(one) if name.startswith("self.")}
            for name in sorted((bound | _refilled(one, first, file, program)) & set(first)):
                if isinstance(one, ast.Assign) and has_graph(value_of(one, name) or one.value, one, file, program):
                    yield State(name=name, file=file, owner=owner, method=method, read=first.pop(name), binding=one)
                    known.add(name)
            if not isinstance(file.parents.get(one), ast.If):
                known |= bound


def _refilled(statement: ast.stmt, first: Mapping[str, ast.stmt], file: SourceFile, program: Program) -> set[str]:
    """The containers of tensors in which a statement replaces an entry: `self.hidden[i] = cell(x, self.hidden[i])`."""
    names = changes(statement) & set(first) if isinstance(statement, ast.Assign) else set()
    owner = program.names(file).class_of(statement)
    return {
        name
        for name in names
        if nesting_of(_read(name, first[name]), file, program).is_container
        or (owner is not None and starts_as_numbers(name, owner, file, program))
    }


def _starts_as_numbers(state: State, program: Program) -> bool:
    """Whether a call replaces entries that were numbers before the first one."""
    is_entry = state.name not in binds(state.binding)
    return is_entry and starts_as_numbers(state.name, state.owner, state.file, program)


def _takes_graphs(state: State, program: Program) -> bool:
    """Whether a later step meets a graph in an entry that was a number."""
    is_stored = stores_graph(state.name, state.method, state.file, program)
    return is_stored and not is_made_anew(state.name, state.method, state.owner)


def _where_number_was(state: State, program: Program) -> tuple[Edit, ...]:
    """What is stored in the place of a number, detached there: the state itself can not be before the first call."""
    file, method = state.file, state.method
    is_many = _is_repeated(state, program) or _loop_round(state) is not None
    if not _starts_as_numbers(state, program):
        return ()
    if is_many and not keys_are_given(state.name, method, file, program):
        return ()
    return cut_where_stored(state.name, method, state.owner, file, program)


def _is_detached(state: State) -> bool:
    """Whether the method, or one of the class that runs it in a loop, binds the attribute to something detached already."""
    loop = _loop_round(state)
    outer = state.file.enclosing(loop, ast.FunctionDef, ast.AsyncFunctionDef) if loop is not None else None
    methods = [state.method, *([outer] if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)) else [])]
    bound = [
        one
        for one in (each for method in methods for each in statements_of(method))
        if isinstance(one, ast.Assign) and state.name in binds(one) | changes(one)
    ]
    return any(isinstance(node, ast.Attribute) and node.attr == "detach" for one in bound for node in walk(one))


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


def _before_each_step(
    state: State, program: Program, *, is_reset_elsewhere: bool = False
) -> Iterator[tuple[Edit, ...]]:
    """A call of the module's own reset, as the first thing that a step does with it; also where another loop calls it."""
    reset = _reset_of(state)
    if reset is None:
        return
    for file, name in _instances(state, program):
        for where, loop, _ in training_loops(program):
            if where is not file or name.startswith("self."):
                continue
            calls = [one for one in loop.body if name in reads(one, graph=False)]
            if calls and _is_given_anew(state, name, loop, besides=reset):
                return
            # A program that resets somewhere, once an epoch, means the state to go on from step to step: only its graph must not.
            # An evaluation that resets before what it runs says nothing of that.
            is_reset = any(
                isinstance(node, ast.Attribute)
                and node.attr == reset
                and dotted_name(node.value) == name
                and not _evaluates(node, file, program)
                for node in file.walk()
            )
            is_each_a_step = is_reset_elsewhere and any(
                one.kind in (OPTIMIZER_STEP, SCALER_STEP) and loop in loops_of(one.statement, one.file)
                for one in find_acts(program)
            )
            if calls and is_reset == is_reset_elsewhere and not is_each_a_step and not _resets(loop, name, reset):
                yield (insert_before(file, calls[0], f"{name}.{reset}()"),)
                return


def _evaluates(node: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether a node stands in a function that switches grad mode off for what it runs, and trains nothing."""
    function = program.names(file).function_of(node)
    if function is None or any(
        function is program.names(one.file).function_of(one.call) for one in find_backwards(program)
    ):
        return False
    inside = [one for one in walk(function) if isinstance(one, ast.stmt)]
    return any(is_without_grad(one, file, program) for one in inside)


def _resets(loop: ast.For | ast.While, name: str, reset: str) -> bool:
    """Whether the loop's own rounds call the reset already."""
    return any(
        isinstance(one, ast.Expr)
        and isinstance(one.value, ast.Call)
        and dotted_name(one.value.func) == f"{name}.{reset}"
        for one in loop.body
    )


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
    if is_run_again(state.method, state.file, program):
        return True
    loops = {loop for _, loop, _ in training_loops(program)}
    names = {name for _, name in _instances(state, program)}
    for file in program.parsed():
        for call in file.walk():
            if isinstance(call, ast.Call) and dotted_name(call.func) in names:
                around = file.enclosing(call, ast.For, ast.While, ast.ListComp, ast.GeneratorExp)
                if around is not None and around not in loops:
                    return True
    return False


def _between_steps(states: Sequence[State], program: Program) -> tuple[Edit, ...]:
    """The states of a module detached behind each step of a program that runs it many times for one backward."""
    places: dict[ast.stmt, tuple[SourceFile, list[str]]] = {}
    for turn in find_turns(program):
        within = next(loops_of(turn.statement, turn.file), None) or scope_of(turn.statement, turn.file, program)
        names = names_of(states[0].owner, within, turn.file, program) if within is not None else []
        kept = [(one, name) for name in names for one in states if within and not _is_given_anew(one, name, within)]
        lines = [line for one, name in kept if (line := _detached_of(one, name, program)) is not None]
        if lines:
            places[end_of_step(turn)] = turn.file, lines
    return tuple(insert_after(file, one, "\n".join(lines)) for one, (file, lines) in places.items())


def _is_given_anew(state: State, owner: str, within: ast.AST, besides: str = "") -> bool:
    """Whether a round binds the state of an object itself, or by another method of it: `net.reset()`, `net.detach_state()`."""
    kept = f"{owner}.{state.name.removeprefix('self.')}"
    methods = {
        one.name
        for one in state.owner.body
        if isinstance(one, ast.FunctionDef) and one is not state.method and one.name != besides
        if any(state.name in binds(each) for each in statements_of(one))
    }
    called = {dotted_name(one.func) for one in walk(within) if isinstance(one, ast.Call)}
    bound = {name for one in walk(within) if isinstance(one, ast.stmt) for name in bound_names(one)}
    return kept in bound or any(f"{owner}.{one}" in called for one in methods)


def _detached_of(state: State, owner: str, program: Program) -> str | None:
    """The statement that detaches the state of an object, which has been run by then."""
    kept = f"{owner}.{state.name.removeprefix('self.')}"
    text = _cut(state, kept, program)
    return None if text is None else f"{kept} = {text}"


def _cut(state: State, kept: str, program: Program) -> str | None:
    """The state with its tensors detached, numbers as they are; None where its kind is not known."""
    nesting = _nesting(state, program)
    return without_graphs(nesting, kept) if _starts_as_numbers(state, program) else detached(nesting, kept)


def _nesting(state: State, program: Program) -> Nesting:
    nesting = nesting_of(_read(state.name, state.read), state.file, program)
    if nesting.is_container:
        return nesting
    form = form_of_statement(state.binding, state.name, state.file, program)
    return nesting_kept(state.name, state.binding, form, state.file, program)


def _loop_round(state: State) -> ast.stmt | None:
    """The loop of another method of the class that runs this one again and again: within it the graph is to go on."""
    for method in state.owner.body:
        if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) or method is state.method:
            continue
        for node in walk(method):
            if isinstance(node, ast.Call) and dotted_name(node.func) == f"self.{state.method.name}":
                around = list(loops_of(node, state.file))
                if around:
                    return around[-1]
    return None


def _goes_back(state: State, program: Program) -> bool:
    """Whether the method itself ends a graph: then each of its runs is a step, whatever loop calls it."""
    inside = set(statements_of(state.method))
    return any(one.file is state.file and one.statement in inside for one in find_backwards(program))


def _stored(state: State, program: Program) -> tuple[Edit, ...]:
    """The state detached as it is stored, where nothing of this call reads it afterwards; else where the method begins."""
    file, binding = state.file, state.binding
    around = list(loops_of(state.read, file))
    if around or state.name not in binds(binding):
        return _at_start(state, program, around[-1] if around else None)
    if any(before(binding, one) and state.name in reads(one) for one in statements_of(state.method)):
        return _at_start(state, program, None)
    return tuple(edit for one in (binding, *_others(state)) for edit in _detached_there(one, state.name, file, program))


def _others(state: State) -> Iterator[ast.Assign]:
    """The other assignments of the state that take up what this one does: `self.value = x` of the first call, before a mean of `x`."""
    taken = reads(value_of(state.binding, state.name)) - {state.name}
    for one in statements_of(state.method):
        if not isinstance(one, ast.Assign) or one is state.binding or state.name not in binds(one):
            continue
        if taken & reads(value_of(one, state.name)):
            yield one


def _detached_there(binding: ast.Assign, name: str, file: SourceFile, program: Program) -> tuple[Edit, ...]:
    form = form_of_statement(binding, name, file, program)
    text = detached_form(name, binding, form, file, program)
    if dotted_name(binding.targets[0]) == name and len(binding.targets) == 1 and text.endswith(".detach()"):
        return (put_method(file, binding.value, ".detach()"),)
    return (insert_after(file, binding, f"{name} = {text}"),)


def _at_start(state: State, program: Program, loop: ast.stmt | None) -> tuple[Edit, ...]:
    cut = _cut(state, state.name, program)
    if cut is None:
        return ()
    text = f"{state.name} = {cut}"
    init = next((one for one in state.owner.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    made = [one for one in statements_of(init) if state.name in binds(one)] if init else []
    value = value_of(made[-1], state.name) if made else None
    if isinstance(value, ast.Constant) and value.value is None and not _is_filled(state):
        text = f"if {state.name} is not None:\n    {text}"
    filling = _filled_with_graph(state, program) if loop is None else None
    if filling is not None:
        text = f"else:\n    {text}"  # what the first call of a sequence makes is to be trained
        return (insert_after(state.file, filling, text),)
    return (insert_before(state.file, loop or state.read, text),)


def _read(name: str, statement: ast.stmt) -> ast.expr:
    """The attribute where a statement takes it up."""
    held = (value_of(statement), statement)
    found = (node for one in held if one is not None for node in walk(one))
    return next(node for node in found if isinstance(node, ast.Attribute) and dotted_name(node) == name)


def _filled_with_graph(state: State, program: Program) -> ast.If | None:
    """`if self.h is None: self.h = self.start(x)` before the state is taken up, where parameters make what it is filled with."""
    for one in definitions(state.name, state.read, state.method):
        guard = state.file.parents.get(one)
        value = value_of(one, state.name)
        if (
            isinstance(guard, ast.If)
            and one in guard.body
            and not guard.orelse
            and value is not None
            and provenance_of(program).trace(Value(value, state.file)).live
        ):
            return guard
    return None


def _is_filled(state: State) -> bool:
    """Whether the method gives the attribute a value before it takes it up: `if self.h is None: self.h = ...`."""
    return bool(definitions(state.name, state.read, state.method))
