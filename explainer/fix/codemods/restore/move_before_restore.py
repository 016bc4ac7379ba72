"""A model moves to its device before its optimizer's state is restored: a state goes where the parameters are when it is loaded.

`net.to(device)` behind `optimizer.load_state_dict(...)`, there or in a helper, moves the parameters and leaves the moments
behind. It moves up; where that is not safe, the state is loaded once more behind it, which casts it to the parameters' device.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, insert_before, remove_statement
from explainer.source.file import SourceFile
from explainer.source.loop.step import OPTIMIZER_STEP, SCALER_STEP, find_acts
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import start_of, walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import binds, block_of, reads, root_of
from explainer.source.value.resolve import resolver_of

_SAID = "same device"
_MOVES = frozenset({"to", "cuda", "xpu"})
_OWNED = frozenset({"parameters", "named_parameters"})
_DEPTH = 3
Place = tuple[SourceFile, ast.stmt]


@dataclass(frozen=True)
class _Move:
    """A call that moves the optimizer's model, and the name that the optimizer has there, if it has one."""

    file: SourceFile
    call: ast.Call
    optimizer: str | None

    @property
    def statement(self) -> ast.stmt:
        """The statement that makes the call."""
        return self.file.statement(self.call)

    @property
    def model(self) -> ast.expr:
        """What is moved."""
        assert isinstance(self.call.func, ast.Attribute)
        return self.call.func.value

    @property
    def is_plain(self) -> bool:
        """Whether the statement does nothing else: `net.to(device)`, `net = net.to(device)`."""
        statement = self.statement
        if isinstance(statement, ast.Assign):
            same = [dotted_name(one) for one in statement.targets] == [dotted_name(self.model)]
            return same and statement.value is self.call
        return isinstance(statement, ast.Expr) and statement.value is self.call


def propose(context: Context) -> Iterator[Proposal]:
    """Edits for the optimizer whose step met a state on another device."""
    if _SAID not in message_of(context):
        return
    program = context.program
    for file, statement in raised_at(context):
        for made in _made(file, statement, program):
            restores = list(_restores(made, program))
            for move in _moves(made, program):
                yield from _moved_up(move, restores)
                yield from _loaded_again(move)
        return


def _made(file: SourceFile, statement: ast.stmt, program: Program) -> Iterator[Value]:
    """The calls that made the optimizer which a statement steps."""
    for act in find_acts(program):
        if act.file is file and act.statement is statement and act.kind in (OPTIMIZER_STEP, SCALER_STEP):
            optimizer = act.call.args[0] if act.kind == SCALER_STEP and act.call.args else act.subject
            yield from resolver_of(program).constructors_of(Value(optimizer, file))


def _restores(made: Value, program: Program) -> Iterator[Place]:
    """The statements that load the state of an optimizer, and those that call the functions they stand in."""
    resolver = resolver_of(program)
    for file, call in resolver.calls_named("load_state_dict"):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if owner is not None and any(one.node is made.node for one in resolver.constructors_of(Value(owner, file))):
            yield from _ways_to((file, file.statement(call)), program)


def _ways_to(place: Place, program: Program, depth: int = 0) -> Iterator[Place]:
    yield place
    file, statement = place
    function = program.names(file).function_of(statement)
    for where, call in resolver_of(program).calls_of(function, file) if function is not None and depth < _DEPTH else ():
        yield from _ways_to((where, where.statement(call)), program, depth + 1)


def _moves(made: Value, program: Program) -> Iterator[_Move]:
    """The calls behind the optimizer's making that move the model whose parameters it was given."""
    resolver = resolver_of(program)
    models = {
        id(one.node)
        for node in (walk(made.node) if isinstance(made.node, ast.Call) else ())
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _OWNED
        for one in resolver.constructors_of(Value(node.func.value, made.file))
    }
    for file, call in (one for name in sorted(_MOVES) for one in resolver.calls_named(name)):
        if not isinstance(call.func, ast.Attribute) or not _is_to_accelerator(call, file, program):
            continue
        moved = {id(one.node) for one in resolver.constructors_of(Value(call.func.value, file))}
        is_later = file is not made.file or start_of(call) > start_of(made.node)
        if moved & models and is_later and dotted_name(call.func.value) is not None:
            yield _Move(file, call, _name_there(made, call, file, program))


def _is_to_accelerator(call: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether a call moves, and neither casts nor brings back to the CPU."""
    assert isinstance(call.func, ast.Attribute)
    given = [*call.args, *(one.value for one in call.keywords if one.arg == "device")]
    if call.func.attr != "to":
        return True
    is_host = any(isinstance(one, ast.Constant) and str(one.value).startswith(("cpu", "meta")) for one in given)
    said = program.names(file).qualified(given[0]) if given else None
    return bool(given) and not is_host and not (said or "").startswith("torch.")


def _name_there(made: Value, call: ast.Call, file: SourceFile, program: Program) -> str | None:
    """What the optimizer is called where the model is moved; None where it cannot be read there."""
    statement, names = made.file.statement(made.node), program.names(file)
    target = dotted_name(statement.targets[0]) if isinstance(statement, ast.Assign) else None
    if target is None or file is not made.file or getattr(statement, "value", None) is not made.node:
        return None
    if target.startswith("self."):
        return target if names.class_of(call) is names.class_of(statement) else None
    around = names.function_of(statement)
    return target if around is None or around is names.function_of(call) else None


def _moved_up(move: _Move, restores: Sequence[Place]) -> Iterator[Proposal]:
    """The move stands before the first statement of its block that restores the state."""
    block = list(block_of(move.statement, move.file))
    at = block.index(move.statement) if move.statement in block else 0
    first = next(
        (one for one in block[:at] for file, restore in restores if file is move.file and _holds(one, restore)), None
    )
    if first is None:
        return
    between = block[block.index(first) : at]
    bound = {name for one in between for part in walk(one) if isinstance(part, ast.stmt) for name in binds(part)}
    model = root_of(move.model)
    # What reads the model in between would find it on another device: a copy, an average.
    is_read = any(model in reads(one, graph=False) for one in between[1:])
    if is_read or bound & reads(move.statement, graph=False):
        return
    file = move.file
    taken = (remove_statement(file, move.statement),) if move.is_plain else ()
    text = file.segment(move.statement) if move.is_plain else file.segment(move.call)
    yield Proposal(
        edits=(insert_before(file, first, text), *taken),
        culprit=culprit_of(
            file, move.call, "moves the parameters away from the optimizer's state, which is loaded before it"
        ),
        belief=2.5,
        title=f"Move the model before the optimizer's state is loaded: `{file.segment(move.call)}`",
    )


def _holds(statement: ast.stmt, inner: ast.stmt) -> bool:
    """Whether a statement makes another where it stands, rather than defines what will."""
    is_definition = isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    return not is_definition and inner in set(walk(statement))


def _loaded_again(move: _Move) -> Iterator[Proposal]:
    """The state is loaded once more behind the move: `optimizer.load_state_dict(optimizer.state_dict())`."""
    name, file = move.optimizer, move.file
    if name is None or not isinstance(move.statement, (ast.Expr, ast.Assign)):
        return
    yield Proposal(
        edits=(insert_after(file, move.statement, f"{name}.load_state_dict({name}.state_dict())"),),
        culprit=culprit_of(file, move.call, "moves the parameters away from the state that the optimizer has by then"),
        belief=1.0,
        title=f"Let the state of `{name}` follow the parameters, by loading it once more",
        because="loading casts each state to the device of its parameter",
    )
