"""What a checkpoint keeps beside modules and optimizers is loaded where it is used: `torch.load(path, map_location=device)`.

`load_state_dict` of a module or an optimizer copies to where the weights are; an average of weights, a memory or a running
statistic that a program takes out of the checkpoint by itself stays on the CPU, where `map_location="cpu"` put it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.clue.failure import failing_statements
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.device_word import HOST, device_word
from explainer.source.file import SourceFile
from explainer.source.tree import walk
from explainer.source.value.binding import Value, find_calls
from explainer.source.value.upstream import calls_behind

_SAID = "same device"
_LOAD = "torch.load"
# A generator's state has to be on the CPU.
_OF_GENERATORS = frozenset({"set_rng_state", "set_rng_state_all", "set_state"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit of the call that loaded what the failing statement reads, to the CPU."""
    if _SAID not in message_of(context) or _restores_generators(context):
        return
    for file, statement in failing_statements(context)[:1]:
        read = [one for one in _read(statement) if (known := seen(one, context)) is None or known.device in HOST]
        for where, call in calls_behind([Value(one, file) for one in read], context.program):
            place = _to_host(call, where, context)
            device = device_word(call, where, context) if place is not None else None
            if place is None or device is None:
                continue
            yield Proposal(
                edits=(edit_of(where, place, device),),
                culprit=culprit_of(where, call, "loads to the CPU what is used where the model is"),
                belief=1.5,
                title=f"Load the checkpoint where it is used: `map_location={device}`",
                because="modules and optimizers copy what they load to where their weights are; what else a checkpoint holds stays where it is loaded",
            )


def _read(statement: ast.stmt) -> Iterator[ast.expr]:
    """The names and attributes that a statement reads, those called left out."""
    called = {one.func for one in walk(statement) if isinstance(one, ast.Call)}
    for one in walk(statement):
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load) and one not in called:
            yield one


def _to_host(call: ast.Call, file: SourceFile, context: Context) -> ast.expr | None:
    """Where a call of `torch.load` says that all goes to the CPU."""
    names = context.program.names(file)
    given = next((one.value for one in call.keywords if one.arg == "map_location"), None)
    given = given or next(iter(call.args[1:2]), None)
    if given is None or not names.is_call(call, _LOAD):
        return None
    if isinstance(given, ast.Call) and names.is_call(given, "torch.device") and given.args:
        named = given.args[0]
    else:
        named = given
    return given if isinstance(named, ast.Constant) and named.value == "cpu" else None


def _restores_generators(context: Context) -> bool:
    return any(
        isinstance(call.func, (ast.Attribute, ast.Name))
        and (call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id) in _OF_GENERATORS
        for _, call in find_calls(context.program)
    )
