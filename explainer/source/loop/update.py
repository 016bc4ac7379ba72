"""Calls that clear, go back and step in a function of the program: `self.apply(optimizer, loss)`, `update(opt, loss)`.

Which argument is the loss is read from what the function's own backward differentiates: a parameter, as it is, weighted or
reduced. A function that computes its loss itself, from a batch or a model, is none of these.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.loop.backward import Backward, find_backwards, stepped
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import end_of, walk
from explainer.source.value.binding import Value, all_parameters, bind_call, bounds_of
from explainer.source.value.callee import callees_of
from explainer.source.value.flow import Reach, flow_of
from explainer.source.value.lineage import GROWS, before, block_of, definitions, statements_of
from explainer.source.value.resolve import resolver_of

_DEPTH = 3  # a function that runs one which runs one
_CHAIN = 8
# What a loss goes through before it is differentiated, and stays the same loss.
_REDUCES = frozenset({"mean", "sum", "float", "double", "squeeze", "view", "reshape", "to", "div", "mul"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Update(Backward):
    """A call of a function of the program that goes back through an argument, its `loss`.

    `optimizer` is what the function steps behind that, by the name that it has where the call stands; None where it has none
    there. `clears` and `steps` say whether the function zeroes gradients before it goes back and steps afterwards, `keeps`
    which attributes it gives a new value.
    """

    optimizer: str | None
    clears: bool
    steps: bool
    keeps: frozenset[str]

    @property
    def is_plain(self) -> bool:
        """Whether the statement does nothing else: `self.apply(opt, loss)`, or `norm = self.apply(opt, loss)`."""
        return isinstance(self.statement, (ast.Expr, ast.Assign)) and self.statement.value is self.call

    @property
    def retains(self) -> ast.keyword | None:
        """None: what keeps the graph stands in the function."""
        return None


def find_updates(program: Program) -> tuple[Update, ...]:
    """Every call of such a function, file by file, in the order of the text."""
    return program.once(_updates)


def find_turns(program: Program) -> tuple[Backward, ...]:
    """Every backward of the program, as it is written and as the calls of the functions around it run it."""
    order = {file.path: number for number, file in enumerate(program.parsed())}
    found = [*find_backwards(program), *find_updates(program)]
    return tuple(sorted(found, key=lambda one: (order[one.file.path], end_of(one.call))))


def _updates(program: Program) -> Iterator[Update]:
    inner: list[Backward] = list(find_backwards(program))
    seen: set[ast.Call] = set()
    for _ in range(_DEPTH):
        outer = [each for one in inner for each in _around(one, program)]
        inner = list({one.call: one for one in outer if one.call not in seen}.values())
        seen |= {one.call for one in inner}
        yield from (one for one in inner if isinstance(one, Update))


def _around(backward: Backward, program: Program) -> Iterator[Update]:
    """The calls of the function around a backward that give it its loss."""
    file = backward.file
    function = program.names(file).function_of(backward.call)
    given = {*_roots(backward.loss, backward.statement, function, 0)} if function is not None else set()
    if function is None or not given & all_parameters(function):
        return
    for where, call in resolver_of(program).calls_of(function, file):
        loss = _loss(call, where, function, given, program) if _runs(call, where, function, program) else None
        if loss is not None:
            yield Update(
                file=where, call=call, loss=loss,
                optimizer=_optimizer(backward, call, where, function),
                clears=_clears(backward, function), steps=_steps(backward, function), keeps=_keeps(backward, function),
            )  # fmt: skip


def _roots(node: ast.expr, at: ast.stmt, function: Function, depth: int) -> Iterator[str]:
    """The names under what is differentiated that its function does not bind: `loss` of `(loss / n).mean()`."""
    if depth > _CHAIN:
        return
    if isinstance(node, ast.Name):
        made = definitions(node.id, at, function)
        if not any(isinstance(one, ast.Assign) for one in made):
            yield node.id
        for one in made:
            if isinstance(one, (ast.Assign, ast.AugAssign)) and dotted_name(_target(one)) == node.id:
                yield from _roots(one.value, one, function, depth + 1)
    for part in _parts(node):
        yield from _roots(part, at, function, depth + 1)


def _target(statement: ast.Assign | ast.AugAssign) -> ast.expr:
    return statement.targets[0] if isinstance(statement, ast.Assign) else statement.target


def _parts(node: ast.expr) -> list[ast.expr]:
    """What a weighted or reduced loss is made of."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    func = node.func if isinstance(node, ast.Call) else None
    return [func.value] if isinstance(func, ast.Attribute) and func.attr in _REDUCES else []


def _runs(call: ast.Call, file: SourceFile, function: Function, program: Program) -> bool:
    """Whether a call of that name runs the function, with all of its arguments given there."""
    if any(one.function is function and not one.given for one in callees_of(call.func, file, program)):
        return True
    target = resolver_of(program).function_of(call, Value(call, file))
    return target is not None and target[1] is function


def _loss(call: ast.Call, file: SourceFile, function: Function, given: set[str], program: Program) -> ast.expr | None:
    """The argument that is differentiated; of several the one that can have a graph, as a weight or a count has none."""
    bound = bind_call(call, function, Value(call, file))
    found = [one.node for name, one in bound.items() if name in given and not isinstance(one.node, ast.Constant)]
    if len(found) > 1:
        found = [one for one in found if flow_of(program).reach_of(one, file) != Reach.NONE]
    is_written = len(found) == 1 and found[0] in file.parents  # no tuple of what `*losses` gathers
    return found[0] if is_written else None


def _optimizer(backward: Backward, call: ast.Call, file: SourceFile, function: Function) -> str | None:
    """What the function steps behind its backward, as it is called where the function is called."""
    inside = _stepped_inside(backward, function)
    if inside is None:
        return None
    first, _, rest = inside.partition(".")
    bound = bind_call(call, function, Value(call, file))
    owner = dotted_name(call.func.value) if isinstance(call.func, ast.Attribute) else None
    if first == "self":
        outer = owner
    elif first in all_parameters(function):
        outer = dotted_name(bound[first].node) if first in bound else None
    else:
        is_local = file is not backward.file or any(one.name == first for one in bounds_of(function))
        outer = None if is_local else first
    return f"{outer}.{rest}" if outer and rest else outer


def _stepped_inside(backward: Backward, function: Function) -> str | None:
    if isinstance(backward, Update) and backward.steps:
        return backward.optimizer
    behind = [one for one in statements_of(function) if before(backward.statement, one)]
    return next((name for one in behind if (name := stepped(one)) is not None), None)


def _clears(backward: Backward, function: Function) -> bool:
    is_inside = isinstance(backward, Update) and backward.clears
    return is_inside or does_before(function.body, backward.statement, "zero_grad")


def _steps(backward: Backward, function: Function) -> bool:
    is_inside = isinstance(backward, Update) and backward.steps
    behind = (one for one in statements_of(function) if before(backward.statement, one))
    return is_inside or any(does(one, "step") for one in behind)


def _keeps(backward: Backward, function: Function) -> frozenset[str]:
    inside = backward.keeps if isinstance(backward, Update) else frozenset()
    return inside | kept_by(function)


def end_of_step(backward: Backward) -> ast.stmt:
    """The last statement of a backward's block that steps for it; the backward itself where none does."""
    block = block_of(backward.statement, backward.file)
    at = list(block).index(backward.statement) if backward.statement in block else len(block)
    return next((one for one in reversed(block[at:]) if stepped(one)), backward.statement)


def does(statement: ast.stmt, method: str) -> bool:
    """Whether a statement calls a method of any object: `self.opts[name].step()`, `scaler.step(opt)`."""
    call = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    return isinstance(call, ast.Call) and getattr(call.func, "attr", "") == method


def does_before(block: Sequence[ast.stmt], at: ast.stmt, method: str) -> bool:
    """Whether a block calls a method in any case before it comes to a statement, which may stand deeper in it."""
    for one in block:
        within = next((each for each in _blocks(one) if any(at in walk(every) for every in each)), None)
        if one is at or within is not None:
            return within is not None and does_before(within, at, method)
        if _always(one, method):
            return True
    return False


def _always(statement: ast.stmt, method: str) -> bool:
    """Whether a statement calls a method however it runs; a loop is taken to have rounds."""
    blocks = [any(_always(one, method) for one in block) for block in _blocks(statement)]
    if isinstance(statement, ast.If):
        return all(blocks) and bool(statement.orelse)
    return does(statement, method) or (any(blocks) and isinstance(statement, (ast.For, ast.With, ast.Try)))


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    found = [getattr(statement, name, None) for name in ("body", "orelse", "finalbody")]
    return [one for one in found if isinstance(one, list) and one]


def kept_by(node: ast.AST) -> frozenset[str]:
    """The attributes that a statement or function gives a new value, or adds to, by their last names."""
    found: set[str] = set()
    for one in walk(node):
        if isinstance(one, (ast.Attribute, ast.Subscript)) and isinstance(one.ctx, ast.Store):
            kept = one.value if isinstance(one, ast.Subscript) else one
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in GROWS:
            kept = one.func.value
        else:
            continue
        found |= {kept.attr} if isinstance(kept, ast.Attribute) else set()
    return frozenset(found)
