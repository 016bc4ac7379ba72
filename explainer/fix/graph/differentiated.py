"""The statements that a derivative needs a graph of: from where its input becomes a leaf to where the gradient is asked for.

A helper that is given both (`gradient(u, x)`) computes neither: what computed them is looked for in the frames around it. Weights
are leaves already, and a copy of their list begins an inner loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from explainer.source.file import SourceFile
from explainer.source.graph.cut import asks_for, grad_state
from explainer.source.loop.backward import find_backwards
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.flow import arguments_of
from explainer.source.value.lineage import binds, block_of, changes, lineage, loops_of, reads, root_of, statements_of
from explainer.source.value.resolve import resolver_of

_GRAD = "torch.autograd.grad"
_WEIGHTS = ("parameters", "named_parameters")
_STEPS = ("training_step", "compute_loss")
Place = tuple[SourceFile, ast.stmt]


class Part(NamedTuple):
    """Statements that follow each other in a block of a function."""

    file: SourceFile
    function: Function
    statements: list[ast.stmt]

    @property
    def is_to_the_end(self) -> bool:
        """Whether the function does nothing behind them."""
        return self.statements[-1] is self.function.body[-1]

    @property
    def is_handed_out(self) -> bool:
        """Whether the function returns what the statements compute as it is, rather than something computed of it later."""
        made = {
            name for one in self.statements for each in walk(one) if isinstance(each, ast.stmt) for name in binds(each)
        }
        returns = [one for one in walk(self.function) if isinstance(one, ast.Return) and one.value is not None]
        inside = {node for one in self.statements for node in walk(one)}
        return any(one in inside or (one.value is not None and _bare(one.value) & made) for one in returns)


def _bare(value: ast.expr) -> set[str]:
    """The names that an expression hands on as they are: alone, in a tuple, a list, a dictionary, an item of them."""
    if isinstance(value, (ast.Tuple, ast.List)):
        return {name for one in value.elts for name in _bare(one)}
    if isinstance(value, ast.Dict):
        return {name for one in value.values for name in _bare(one)}
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id[:1].isupper():
        return {name for one in (*value.args, *(each.value for each in value.keywords)) for name in _bare(one)}
    if isinstance(value, (ast.Subscript, ast.Starred)):
        return _bare(value.value)
    return {value.id} if isinstance(value, ast.Name) else set()


def find_part(places: Sequence[Place], program: Program) -> Part | None:
    """What needs a graph for the gradient that the first of `places` asks for; None where no leaf of it is seen to be made.

    `places` are the statements of the frames, the innermost first.
    """
    inputs = next((found for node in walk(places[0][1]) if (found := _inputs(node, *places[0], program))), [])
    for at, (file, statement) in enumerate(places):
        function = program.names(file).function_of(statement)
        if not inputs or function is None:
            return None
        leaf = _leaf_of(inputs, statement, function, file, program)
        if leaf is not None:
            first = _first_reader(leaf, statement, function)
            return _part(first, _around(statement, leaf, file), function, file, program)
        inputs = _by_caller(inputs, function, places[at + 1][1]) if at + 1 < len(places) else []
    return None


def reaches_backward(places: Sequence[Place], program: Program) -> bool:
    """Whether what the first of `places` binds becomes part of a loss in one of the frames, each of which calls the one before."""
    for file, statement in places:
        function = program.names(file).function_of(statement)
        losses = [(one.loss, one.statement) for one in find_backwards(program) if one.file is file]
        if any(_reads_of(loss, at, file, program) & binds(statement) or at is statement for loss, at in losses):
            return True
        returns = [one for one in walk(function) if isinstance(one, ast.Return)] if function is not None else []
        if not any(
            one is statement or (one.value is not None and _reads_of(one.value, one, file, program) & binds(statement))
            for one in returns
        ):
            return False
        if function is not None and function.name in _STEPS:
            return True
    return False


def _reads_of(value: ast.expr, at: ast.stmt, file: SourceFile, program: Program) -> set[str]:
    """The names that a gradient of a value would go back through, in its own function."""
    return reads(value).union(*(reads(one) for one in lineage(value, at, file, program)))


def asks_for_gradient(node: ast.AST, file: SourceFile, program: Program, depth: int = 2) -> bool:
    """Whether a node takes a derivative, by itself or by a function of the program."""
    for call in [one for one in walk(node) if isinstance(one, ast.Call)]:
        if program.names(file).is_call(call, _GRAD):
            return True
        target = resolver_of(program).function_of(call, Value(node=call, file=file)) if depth else None
        if target is not None and asks_for_gradient(target[1], target[0], program, depth - 1):
            return True
    return False


def _inputs(node: ast.AST, file: SourceFile, at: ast.stmt, program: Program) -> list[ast.expr]:
    """What `autograd.grad` differentiates with respect to, where a node of a statement, and none inside of it, calls it."""
    if not program.names(file).is_call(node, _GRAD) or not isinstance(node, ast.Call) or file.statement(node) is not at:
        return []
    wanted = [*node.args[1:2], *(one.value for one in node.keywords if one.arg == "inputs")]
    parts = [one.elts if isinstance(one, (ast.Tuple, ast.List)) else [one] for one in wanted]
    return [one for each in parts for one in each]


def _by_caller(inputs: Sequence[ast.expr], function: Function, caller: ast.stmt) -> list[ast.expr]:
    """The inputs in the names of the frame that calls the function; none where that cannot be read."""
    for call in [one for one in walk(caller) if isinstance(one, ast.Call)]:
        if function.name in ("forward", "__call__", ast.unparse(call.func).rpartition(".")[2]):
            given = dict(arguments_of(call, function))
            found = [one for each in inputs if (one := given.get(root_of(each) or "")) is not None]
            if found:
                return found
    return []


def _leaf_of(
    inputs: Sequence[ast.expr], at: ast.stmt, function: Function, file: SourceFile, program: Program
) -> ast.stmt | None:
    """The first statement of a function that makes one of the inputs, or what they are made of, a leaf that requires grad."""
    own = {ast.unparse(one) for one in inputs} | {root for one in inputs if (root := root_of(one))}
    for one in inputs:
        for statement in lineage(one, at, file, program):
            own |= binds(statement) | reads(statement)
    made = [one for one in statements_of(function) if one.lineno < at.lineno and _leaves(one) & own]
    return min(made, key=lambda one: (one.lineno, one.col_offset), default=None)


def _leaves(statement: ast.stmt) -> set[str]:
    """The names whose tensors a statement makes leaves that require grad."""
    found: set[str] = set()
    if isinstance(statement, (ast.For, ast.While, ast.If, ast.With, ast.Try)):
        return found
    for node in walk(statement):
        if not isinstance(node, ast.Call):
            continue
        is_flag = isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_"
        is_off = any(isinstance(one, ast.Constant) and one.value is False for one in node.args)
        if is_flag and not is_off:
            assert isinstance(node.func, ast.Attribute)
            found |= {ast.unparse(node.func.value), root_of(node.func.value) or ""} | binds(statement)
        elif asks_for(node, "requires_grad", value=True) or getattr(node.func, "attr", "") in _WEIGHTS:
            found |= binds(statement)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        is_on = isinstance(statement.value, ast.Constant) and statement.value.value is True
        if statement.targets[0].attr == "requires_grad" and is_on:
            found.add(ast.unparse(statement.targets[0].value))
    return found - {""}


def _first_reader(leaf: ast.stmt, at: ast.stmt, function: Function) -> ast.stmt:
    """The first statement behind the leaf that computes with it; the one that asks for the gradient where none does."""
    known = {one.partition("[")[0] for one in _leaves(leaf)}
    for one in statements_of(function):
        if (
            one.lineno <= leaf.lineno
            or one.lineno >= at.lineno
            or isinstance(one, (ast.For, ast.While, ast.If, ast.With))
        ):
            continue
        made = binds(one) | changes(one)
        if made and not _leaves(one) and reads(one) & known:
            return one
    return at


def _around(statement: ast.stmt, leaf: ast.stmt, file: SourceFile) -> ast.stmt:
    """The outermost loop round a statement whose rounds follow the leaf; the statement where there is none."""
    loops = [one for one in loops_of(statement, file) if leaf not in walk(one)]
    return loops[-1] if loops else statement


def _part(first: ast.stmt, last: ast.stmt, function: Function, file: SourceFile, program: Program) -> Part | None:
    """The statements from one to another in the innermost block that holds both, with those behind that differentiate again.

    All of the block before it where that switches grad mode off between the two.
    """
    above, part = list(_upwards(first, file)), None
    for end in _upwards(last, file, within=program):
        block = block_of(end, file)
        start = next((one for one in above if one in block), None)
        begin, stop = block.index(start) if start is not None else 0, block.index(end)
        again = [at for at in range(stop, len(block)) if asks_for_gradient(block[at], file, program)]
        part = Part(file, function, list(block[begin : max([stop, *again]) + 1]))
        if start is not None:
            break
    return part


def _upwards(statement: ast.stmt, file: SourceFile, within: Program | None = None) -> Iterator[ast.stmt]:
    """A statement and those round it in its function; `within` a block that switches grad mode only those inside of it."""
    at: ast.AST | None = statement
    while isinstance(at, ast.stmt) and not isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield at
        at = file.enclosing(at, ast.stmt)
        if within is not None and isinstance(at, ast.With):
            names = within.names(file)
            if any(grad_state(one.context_expr, names) is not None for one in at.items):
                return
