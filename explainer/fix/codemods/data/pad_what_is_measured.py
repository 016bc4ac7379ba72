"""Sequences of several lengths whose lengths are kept are padded: `pad_sequence(labels, batch_first=True)` for `torch.stack(labels)`.

Only in a function that pads another part of the batch so, or of a program that packs what is padded, and that hands on `len(one) for
one in labels`: what reads the padded rows can tell where each ends.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places, message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import spell
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk

_SAID = "stack expects each tensor to be equal size"
_PAD, _PACK = "torch.nn.utils.rnn.pad_sequence", "torch.nn.utils.rnn.pack_padded_sequence"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the stack on the failing line."""
    if _SAID not in message_of(context):
        return
    for file, statement in crash_places(context):
        names = context.program.names(file)
        function = file.enclosing(statement, ast.FunctionDef)
        for call in walk(statement) if function is not None else ():
            is_stack = isinstance(call, ast.Call) and names.is_call(call, "torch.stack") and len(call.args) == 1
            if not is_stack or not isinstance(call, ast.Call) or call.keywords or function is None:
                continue
            rows = dotted_name(call.args[0])
            padded = _padding(function, file, context.program)
            pad = file.segment(padded.func) if padded is not None else _for_packing(file, context.program)
            if rows is None or pad is None or not _is_measured(rows, function):
                continue
            yield Proposal(
                edits=(edit_of(file, call, f"{pad}({rows}, batch_first=True)"),),
                culprit=culprit_of(file, call, "stacks sequences of several lengths"),
                belief=2.5,
                because="their lengths are handed on beside them, by which what reads them can tell where each ends",
            )


def _for_packing(file: SourceFile, program: Program) -> str | None:
    """How a file spells the padding that a program packs again, with the batch first, by the lengths beside it."""
    pad = spell(program.names(file), _PAD)
    is_there = pad.partition(".")[0] in program.names(file).imports
    packs = [
        one
        for each in program.parsed()
        for one in each.walk()
        if isinstance(one, ast.Call) and program.names(each).is_call(one, _PACK)
    ]
    return pad if is_there and packs and all(_is_batch_first(one) for one in packs) else None


def _is_batch_first(call: ast.Call) -> bool:
    return any(each.arg == "batch_first" and getattr(each.value, "value", None) is True for each in call.keywords)


def _padding(function: ast.AST, file: SourceFile, program: Program) -> ast.Call | None:
    """The padding of another part of the batch, with the batch first."""
    return next(
        (
            one
            for one in walk(function)
            if isinstance(one, ast.Call) and program.names(file).is_call(one, _PAD) and _is_batch_first(one)
        ),
        None,
    )


def _is_measured(rows: str, function: ast.AST) -> bool:
    """Whether the length of each row is taken: `[len(one) for one in labels]`."""
    for node in walk(function):
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and dotted_name(node.generators[0].iter) == rows:
            lengths = [one for one in walk(node.elt) if isinstance(one, ast.Call)]
            if any(getattr(one.func, "id", getattr(one.func, "attr", "")) in ("len", "size") for one in lengths):
                return True
    return False
