"""`self.out(last[-1])` for `self.out(last)`, where `last` is the state of a recurrent layer: `[layers, batch, features]`.

So is what it is joined with: `torch.cat([last[-1], static], dim=1)`.

Of a layer that runs one way; of one that runs both ways the last layer has two states.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.network.precision import is_module
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_JOINS = ("torch.cat", "torch.concat", "torch.hstack")
_RANKS = re.compile(r"Tensors must have same number of dimensions: got (?:3 and 2|2 and 3)")
_CELLS = {"torch.nn.GRU": False, "torch.nn.RNN": False, "torch.nn.LSTM": True}


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all layers of a function that are given such a state whole."""
    if not context.has_failed:
        return
    for file, function in context.program.functions():
        for statement in walk(function):
            name = _state(statement, file, context) if isinstance(statement, ast.Assign) else None
            uses = [
                one
                for call in walk(function)
                if name is not None and isinstance(call, ast.Call) and is_module(call.func, file, context.program)
                for one in call.args[:1]
                if isinstance(one, ast.Name) and one.id == name
            ]
            uses += [one for one in _joined(context) if one.id == name and one in walk(function)]
            bound = [
                one
                for one in walk(function)
                if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store)
            ]
            if uses and len(bound) == 1:
                yield Proposal(
                    edits=tuple(edit_of(file, one, f"{name}[-1]") for one in uses),
                    culprit=culprit_of(
                        file,
                        uses[0],
                        f"takes `{name}` whole: it is [layers, batch, features], one state for each layer",
                    ),
                    belief=2.0,
                )


def _joined(context: Context) -> list[ast.Name]:
    """The names in a join that failed for the number of axes."""
    if _RANKS.search(message_of(context)) is None:
        return []
    return [
        name
        for file, statement in list(raised_at(context))[:1]
        for node in walk(statement)
        if isinstance(node, ast.Call) and context.program.names(file).is_call(node, *_JOINS) and node.args
        for name in getattr(node.args[0], "elts", ())
        if isinstance(name, ast.Name)
    ]


def _state(statement: ast.Assign, file: SourceFile, context: Context) -> str | None:
    """The name that gets the last hidden states in `_, h = self.gru(x)` or `_, (h, c) = self.lstm(x)`."""
    call, target = statement.value, statement.targets[0]
    if not isinstance(call, ast.Call) or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return None
    made = list(resolver_of(context.program).constructors_of(Value(call.func, file)))
    layer = made[0].node if len(made) == 1 else None
    if not isinstance(layer, ast.Call):
        return None
    names = context.program.names(made[0].file)
    kind = names.qualified(layer.func) or ""
    goes_both_ways = any(one.arg in ("bidirectional", "proj_size", None) for one in layer.keywords)
    layers = next((number_of(one.value, names) for one in layer.keywords if one.arg == "num_layers"), 1)
    if kind not in _CELLS or goes_both_ways or layers is None:
        return None
    # What was refused has the layers where the batch should be: "[1, 5], got [16]", "batch_size (2)".
    message = message_of(context)
    if not re.search(rf"(?:\[|batch_size \(){int(layers)}[,)]", message) and _RANKS.search(message) is None:
        return None
    state: ast.expr = target.elts[1]
    if _CELLS[kind]:
        state = state.elts[0] if isinstance(state, ast.Tuple) and len(state.elts) == 2 else call
    return state.id if isinstance(state, ast.Name) else None
