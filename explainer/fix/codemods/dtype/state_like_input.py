"""`self.gru(x, h0)` becomes `self.gru(x, h0.to(x.dtype))` where a recurrent layer's first state has another dtype than its input.

Where the call that makes the state stands in sight, in the same function, it is told the dtype there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import add_argument, operand, put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.dtype import stated_dtype
from explainer.source.value.resolve import resolver_of

_MESSAGE = re.compile(r"found input tensor with \w+ and hidden tensor with \w+")
_CELLS = re.compile(r"torch\.nn\.(?:LSTM|GRU|RNN)(?:Cell)?")
_MAKERS = ("torch.zeros", "torch.ones", "torch.full", "torch.randn", "torch.rand", "torch.empty")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the recurrent layer on the line that raised."""
    if _MESSAGE.search(message_of(context)) is None and not _failed_in_layer(context):
        return
    for file, statement in list(raised_at(context))[:1]:
        calls = [
            one for one in walk(statement) if isinstance(one, ast.Call) and _is_recurrent(one, file, context.program)
        ]
        for call in calls[:1]:
            state = call.args[1]
            parts = state.elts if isinstance(state, ast.Tuple) else [state]
            dtype = f"{operand(file, call.args[0])}.dtype"
            yield Proposal(
                edits=tuple(edit for one in parts for edit in _edits(one, call, file, dtype, context.program)),
                culprit=culprit_of(file, state, "is made in the default dtype, which is not its input's"),
                belief=2.0,
            )


def _failed_in_layer(context: Context) -> bool:
    """Whether a product failed inside of a recurrent layer, which has checked its input's dtype by then: the state's is another."""
    last = next((one for one in reversed(context.incident.exceptions) if one.frames), None)
    return last is not None and "same dtype" in last.message and last.frames[-1].file.endswith("nn/modules/rnn.py")


def _is_recurrent(call: ast.Call, file: SourceFile, program: Program) -> bool:
    if len(call.args) < 2 or isinstance(call.args[0], ast.Starred) or dotted_name(call.args[0]) is None:
        return False
    made = resolver_of(program).constructors_of(Value(call.func, file))
    names = [program.names(one.file).qualified(getattr(one.node, "func", None)) or "" for one in made]
    return bool(names) and all(_CELLS.fullmatch(one) for one in names)


def _edits(state: ast.expr, call: ast.Call, file: SourceFile, dtype: str, program: Program) -> list[Edit]:
    names = program.names(file)
    here = names.function_of(call)
    made = [one.node for one in resolver_of(program).behind(Value(state, file)) if one.file is file]
    makers = [
        one
        for one in (*made, state)
        if isinstance(one, ast.Call) and names.is_call(one, *_MAKERS) and stated_dtype(one, names) is None
    ]
    if len(makers) == 1 and names.function_of(makers[0]) is here and _is_parameter(call.args[0], here):
        return [add_argument(file, makers[0], f"dtype={dtype}")]
    return [put_method(file, state, f".to({dtype})")]


def _is_parameter(node: ast.expr, function: ast.AST | None) -> bool:
    """Whether an input is a parameter of the function that nothing binds anew."""
    root = (dotted_name(node) or "").partition(".")[0]
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    bound = [
        one for one in walk(function) if isinstance(one, ast.Name) and one.id == root and isinstance(one.ctx, ast.Store)
    ]
    return any(one.arg == root for one in function.args.args) and not bound
