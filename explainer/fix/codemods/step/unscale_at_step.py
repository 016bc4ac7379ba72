"""An `unscale_` that runs more often than the scaler's step moves to where only that step follows, with the clipping behind it.

`backward()` of a helper unscales and clips after each micro batch, `update()` steps once for several of them: what unscales
belongs to the update, also where the two are methods of one class, or a function and the loop that calls it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before, lines_of, remove_statement
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.step import BACKWARD, CLIP, SCALE, SCALER_STEP, UNSCALE, UPDATE, Act, find_acts
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, bounds_of, walk_scope
from explainer.source.value.flow import arguments_of
from explainer.source.value.lineage import before, binds, block_of, reads
from explainer.source.value.resolve import resolver_of

_TWICE = "unscale_() has already been called on this optimizer"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await, ast.Raise)
_GRADIENTS = frozenset({"grad", "parameters", "param_groups"})
_DEPTH = 3


@dataclass(frozen=True)
class _Training:
    """The calls of the training steps, and the one that steps the optimizer in question."""

    program: Program
    acts: Sequence[Act]
    step: Act


@dataclass(frozen=True)
class _Unit:
    """The statements that move, in one block."""

    file: SourceFile
    statements: tuple[ast.stmt, ...]


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each optimizer that is unscaled in one place and stepped in another."""
    if not any(_TWICE in one.message for one in context.incident.exceptions):
        return
    program = context.program
    acts = list(find_acts(program))
    if not any(one.kind == UPDATE for one in acts):
        return
    for unscale in (one for one in acts if one.kind == UNSCALE and one.call.args):
        same = [one for one in acts if one.call.args and _is_same(one, unscale, program)]
        steps = [one for one in same if one.kind == SCALER_STEP]
        if len(steps) != 1 or sum(one.kind == UNSCALE for one in same) != 1:
            continue
        training = _Training(program, acts, _seen_from(unscale, steps[0], program))
        why = culprit_of(unscale.file, unscale.call, "unscales after every batch, while the scaler steps less often")
        whole = _helper_at_step(unscale, training)
        if whole:
            yield Proposal(edits=whole, culprit=why, belief=2.0)
            continue
        unit = _unit(unscale.statement, unscale.file, training)
        text = _text(unit, training.step, program) if unit is not None else None
        if unit is None or text is None:
            continue
        place = _place(training.step, training, unit)
        yield Proposal(
            edits=(
                insert_before(training.step.file, place, text),
                *(remove_statement(unit.file, one) for one in unit.statements),
            ),
            culprit=why,
            belief=1.8,
        )


def _seen_from(unscale: Act, step: Act, program: Program) -> Act:
    """The step as the function that unscales makes it: by a call, `if done: self._update()`, where another function steps."""
    function = program.names(unscale.file).function_of(unscale.statement)
    called = _called_in(step, function, unscale.file, program)
    return replace(step, statement=called, file=unscale.file) if called is not None else step


def _is_same(one: Act, other: Act, program: Program) -> bool:
    """Whether two calls concern one scaler and one optimizer."""
    if one.kind not in (UNSCALE, SCALER_STEP):
        return False
    pairs = ((one.subject, other.subject), (one.call.args[0], other.call.args[0]))
    return all(_is_one(left, right, one.file, other.file, program) for left, right in pairs)


def _is_one(left: ast.expr, right: ast.expr, here: SourceFile, there: SourceFile, program: Program) -> bool:
    if here is there and ast.dump(left) == ast.dump(right):
        around = [program.names(here).function_of(one) for one in (left, right)]
        owners = [program.names(here).class_of(one) for one in (left, right)]
        is_own = (dotted_name(left) or "").startswith("self.") and owners[0] is owners[1]
        if is_own or around[0] is around[1]:
            return True
    resolver = resolver_of(program)
    made = [{one.node for one in resolver.constructors_of(Value(*each))} for each in ((left, here), (right, there))]
    return bool(made[0]) and made[0] == made[1]


def _unit(statement: ast.stmt, file: SourceFile, training: _Training, depth: int = 0) -> _Unit | None:
    """What moves: the statement with the clipping behind it, the `if` or function that holds nothing else."""
    program, acts, step = training.program, training.acts, training.step
    above = file.parents.get(statement)
    block = list(block_of(statement, file))
    if _holds(above, step.statement):
        moved = _with_clips(statement, block, acts)
        at = max(block.index(one) for one in moved)
        return _Unit(file, tuple(moved)) if moved and _is_left(block[at + 1 :], step.statement) else None
    if (
        isinstance(above, (ast.If, ast.With, ast.For))
        and not getattr(above, "orelse", [])
        and _is_about_gradients(above, acts)
    ):
        return _unit(above, file, training, depth)
    if isinstance(above, (ast.For, ast.While)) and step.statement in block_of(above, file):
        moved = _with_clips(statement, block, acts)
        rest = block[max(block.index(one) for one in moved) + 1 :]
        is_last = before(above, step.statement) and not any(_takes_gradients(one) or _leaves(one) for one in rest)
        return _Unit(file, tuple(moved)) if is_last and not _are_read(moved, above) else None
    if isinstance(above, (ast.If, ast.With, ast.For)):
        return None
    if isinstance(above, _FUNCTIONS) and depth < _DEPTH and all(_moves(one, acts) for one in above.body):
        calls = resolver_of(program).calls_of(above, file)
        where = calls[0][0] if len(calls) == 1 else None
        outer = where.statement(calls[0][1]) if where is not None else None
        if where is not None and isinstance(outer, ast.Expr) and outer.value is calls[0][1]:
            return _unit(outer, where, training, depth + 1)
        return None
    moved = _with_clips(statement, block, acts)
    rest = block[max(block.index(one) for one in moved) + 1 :]
    around = program.names(file).function_of(statement) or file.tree
    is_whole = not _are_read(moved, around) and not any(_takes_gradients(one) for one in rest)
    return _Unit(file, tuple(moved)) if is_whole else None


def _helper_at_step(unscale: Act, training: _Training) -> tuple[Edit, ...]:
    """The call of a helper that unscales and clips, moved to where the step is called, with what reads its result.

    For one that clips by a function of its own, or gives back the norm: its lines cannot be told apart. () where it does
    more for the step, or what it gives is read in every round.
    """
    program = training.program
    helper = program.names(unscale.file).function_of(unscale.statement)
    acts = [one for one in training.acts if helper is not None and one.statement in set(walk(helper))]
    if helper is None or any(one.kind not in (UNSCALE, CLIP) for one in acts) or _is_plain(helper, training.acts):
        return ()
    calls = resolver_of(program).calls_of(helper, unscale.file)
    if len(calls) != 1:
        return ()
    file, call = calls[0]
    outer, caller = file.statement(call), program.names(file).function_of(call)
    step = _called_in(training.step, caller, file, program)
    if step is None or getattr(outer, "value", None) is not call or not isinstance(outer, (ast.Expr, ast.Assign)):
        return ()
    block = list(block_of(outer, file))
    above = next((one for one in block[block.index(outer) + 1 :] if step in set(walk(one))), None)
    # `if calls % every: return False` before the step leaves it out as an `if` around it does.
    if above is None or not _is_left(block[block.index(outer) + 1 :] if above is step else [above], step):
        return ()
    moved: list[ast.stmt] = [outer]
    names = set(binds(outer))
    for one in block[block.index(outer) + 1 : block.index(above)]:
        if reads(one, graph=False) & names:
            moved.append(one)
            names |= binds(one)
    scope = caller or file.tree
    rest = [one for one in walk_scope(scope) if isinstance(one, ast.Name) and one.id in names] if scope else []
    inside = {node for one in (*moved, *block_of(step, file)) for node in walk(one)}
    if any(one not in inside for one in rest) or any(_leaves(one) for one in moved):
        return ()
    text = "\n".join(lines_of(file, one) for one in moved)
    place = _first_beside(step, file, training, _Unit(file, tuple(moved)))
    return (insert_before(file, place, text), *(remove_statement(file, one) for one in moved))


def _is_plain(helper: Function, acts: Sequence[Act]) -> bool:
    return all(_moves(one, acts) for one in helper.body)


def _called_in(act: Act, caller: Function | None, file: SourceFile, program: Program) -> ast.stmt | None:
    """The statement of a function that makes a step, itself or by calling what does; None where there is no such one."""
    where, statement = act.file, act.statement
    for _ in range(_DEPTH):
        function = program.names(where).function_of(statement)
        if function is caller and where is file:
            return statement
        found = resolver_of(program).calls_of(function, where) if function is not None else []
        # `self.scaler.step(...)` in a method of that name is no call of it.
        calls = [one for one in found if program.names(one[0]).function_of(one[1]) is not function]
        if len(calls) != 1:
            return None
        where, statement = calls[0][0], calls[0][0].statement(calls[0][1])
    return None


def _holds(above: ast.AST | None, step: ast.stmt) -> bool:
    return above is not None and any(node is step for node in walk(above))


def _is_left(later: Sequence[ast.stmt], step: ast.stmt) -> bool:
    """Whether the step is not always reached from here: it stands under an `if`, or something leaves before it."""
    for one in later:
        if one is step:
            return False
        if any(node is step for node in walk(one)):
            return isinstance(one, (ast.If, ast.Try))
        if any(isinstance(node, _LEAVES) for node in walk(one)):
            return True
    return False


def _with_clips(statement: ast.stmt, block: list[ast.stmt], acts: Sequence[Act]) -> list[ast.stmt]:
    """A statement and the clippings that follow it in its block, before any other call of the step or look at gradients."""
    kinds = {one.statement: one.kind for one in acts}
    moved = [statement]
    for one in block[block.index(statement) + 1 :]:
        inside = [kinds[node] for node in walk(one) if isinstance(node, ast.stmt) and node in kinds]
        is_clip = bool(inside) and set(inside) == {CLIP}
        if is_clip and (one in kinds or _is_about_gradients(one, acts)) and not _leaves(one):
            moved.append(one)
        elif (
            inside or _leaves(one) or any(isinstance(node, ast.Attribute) and node.attr == "grad" for node in walk(one))
        ):
            break
    return moved


def _takes_gradients(statement: ast.stmt) -> bool:
    """Whether a statement hands parameters or gradients to something: it would get scaled ones."""
    return any(
        isinstance(one, ast.Call)
        and any(isinstance(each, ast.Attribute) and each.attr in _GRADIENTS for part in one.args for each in walk(part))
        for one in walk(statement)
    )


def _leaves(statement: ast.stmt) -> bool:
    return any(isinstance(node, _LEAVES) for node in walk(statement))


def _is_about_gradients(block: ast.AST, acts: Sequence[Act]) -> bool:
    """Whether a block does nothing but unscale and clip."""
    return all(_moves(one, acts) for one in getattr(block, "body", []))


def _moves(statement: ast.stmt, acts: Sequence[Act]) -> bool:
    is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    if isinstance(statement, (ast.If, ast.With, ast.For)):
        return not getattr(statement, "orelse", []) and _is_about_gradients(statement, acts)
    kinds = {one.kind for one in acts if one.statement is statement}
    return is_docstring or (bool(kinds) and kinds <= {UNSCALE, CLIP} and not _leaves(statement))


def _are_read(moved: Sequence[ast.stmt], scope: ast.AST | None) -> bool:
    """Whether what the statements bind, a gradient's norm, is read by others of a function or a loop."""
    inside = {node for one in moved for node in walk(one)}
    names = {name for one in inside if isinstance(one, ast.stmt) for name in binds(one) if "." not in name}
    return scope is not None and any(
        isinstance(node, ast.Name) and node.id in names and node not in inside and isinstance(node.ctx, ast.Load)
        for node in walk(scope)
    )


def _text(unit: _Unit, step: Act, program: Program) -> str | None:
    """The lines as they are written where the step is; None where a name means nothing there."""
    function = program.names(unit.file).function_of(unit.statements[0])
    there = program.names(step.file).function_of(step.statement)
    if there is function and unit.file is step.file:
        return (
            None
            if _is_bound_later(unit, step, program)
            else "\n".join(lines_of(unit.file, one) for one in unit.statements)
        )
    own = _names_of(function) if function is not None else set()
    meant: dict[str, str] = {}
    for node in (one for each in unit.statements for one in walk(each) if isinstance(one, ast.Name)):
        if node.id in own and node.id not in meant:
            text = _meant(node.id, function, there, (unit.file, step.file), program)
            if text is None and not isinstance(node.ctx, ast.Store):
                return None
            meant[node.id] = text or node.id
        elif node.id not in own and not _is_known(node, unit.file, step.file, there, program):
            return None
    return "\n".join(_renamed(unit.file, one, meant) for one in unit.statements)


def _is_bound_later(unit: _Unit, step: Act, program: Program) -> bool:
    """Whether a norm that the clipping gives is read where the step is not made."""
    block = list(block_of(step.statement, step.file))
    inside = {node for one in (*unit.statements, *block) for node in walk(one)}
    names = {name for one in unit.statements for name in binds(one) if "." not in name}
    scope = program.names(step.file).function_of(step.statement) or step.file.tree
    return scope is not None and any(
        isinstance(node, ast.Name) and node.id in names and node not in inside for node in walk(scope)
    )


def _names_of(function: Function) -> set[str]:
    return all_parameters(function) | {one.name for one in bounds_of(function) if "." not in one.name}


def _meant(
    name: str, function: Function | None, there: Function | None, files: tuple[SourceFile, SourceFile], program: Program
) -> str | None:
    """What a name of one function is called in another: its object, the argument that is given, a parameter with the same."""
    here, where = files
    if function is None:
        return None
    owners = [program.names(file).class_of(one) for file, one in ((here, function), (where, there)) if one is not None]
    if name == "self" and len(owners) == 2 and owners[0] is owners[1] and there is not None:
        return "self" if "self" in all_parameters(there) else None
    if name not in all_parameters(function):
        return None
    resolver = resolver_of(program)
    calls = resolver.calls_of(function, here)
    if len(calls) != 1:
        return None
    file, call = calls[0]
    given = _given(name, call, function)
    caller = program.names(file).function_of(call)
    if given is None or (file is where and caller is there):
        return given
    others = resolver.calls_of(there, where) if there is not None else []
    if there is None or len(others) != 1 or program.names(others[0][0]).function_of(others[0][1]) is not caller:
        return None
    return next((one for one in sorted(all_parameters(there)) if _given(one, others[0][1], there) == given), None)


def _given(name: str, call: ast.Call, function: Function) -> str | None:
    """The name that a call gives a parameter; for `self` the object that the method is called on."""
    if name == "self":
        return dotted_name(call.func.value) if isinstance(call.func, ast.Attribute) else None
    return next((dotted_name(value) for one, value in arguments_of(call, function) if one == name), None)


def _is_known(node: ast.Name, here: SourceFile, there: SourceFile, function: Function | None, program: Program) -> bool:
    """Whether a name of the file means the same where the step is."""
    if function is not None and node.id in _names_of(function):
        return False
    return here is there or (
        node.id in program.names(here).imports
        and program.names(here).imports[node.id] == program.names(there).imports.get(node.id)
    )


def _renamed(file: SourceFile, statement: ast.stmt, meant: dict[str, str]) -> str:
    """The lines of a statement with its names written otherwise."""
    nodes = [one for one in walk(statement) if isinstance(one, ast.Name) and meant.get(one.id, one.id) != one.id]
    if not nodes:
        return lines_of(file, statement)
    lead, start = len(file.indent(statement.lineno)), file.span(statement)[0]
    text = file.segment(statement)
    for node in sorted(nodes, key=lambda one: -file.span(one)[0]):
        first, last = file.span(node)
        text = text[: first - start] + meant[node.id] + text[last - start :]
    return "\n".join(line if line[:lead].strip() else line[lead:] for line in text.split(file.newline))


def _place(step: Act, training: _Training, unit: _Unit) -> ast.stmt:
    """The first statement of the step's block that only runs where it steps: what reads gradients there reads unscaled ones."""
    return _first_beside(step.statement, step.file, training, unit)


def _first_beside(step: ast.stmt, file: SourceFile, training: _Training, unit: _Unit) -> ast.stmt:
    block = list(block_of(step, file))
    if step not in block:
        return step
    at = block.index(step)
    while at and not _stays_above(block[at - 1], file, training, unit):
        at -= 1
    return block[at]


def _stays_above(statement: ast.stmt, file: SourceFile, training: _Training, unit: _Unit) -> bool:
    """Whether gradients are not whole before a statement, or a name of what moves, or the step may yet be left out."""
    inside = set(walk(statement))
    is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    is_backward = any(one.kind in (BACKWARD, SCALE) and one.statement in inside for one in training.acts)
    helpers = (training.program.names(one.file).function_of(one.call) for one in training.acts if one.kind == BACKWARD)
    called = {one.name for one in helpers if one is not None}
    goes_back = any(
        isinstance(one, ast.Call) and (dotted_name(one.func) or "").rpartition(".")[2] in called for one in inside
    )
    read = {
        one.id
        for each in unit.statements
        for one in walk(each)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
    }
    is_moved = file is unit.file and statement in unit.statements
    return (
        is_docstring or is_backward or goes_back or is_moved or _leaves(statement) or bool(read & set(binds(statement)))
    )
