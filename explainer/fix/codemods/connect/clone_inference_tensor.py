"""An inference tensor that a library handed out is cloned where training uses it: `probe(codes.clone())`.

Where the program itself switches inference mode on, `no_grad` in its place is the better cure. Which name holds such a tensor
only the live program can say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen import seen_tensors
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.on_demand import is_made_on_demand, kept_value

_MADE = "makes `{}` once, in inference mode, and keeps it for training"
_READ = (ast.Name, ast.Attribute, ast.Subscript)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each statement that raised and reads inference tensors."""
    wanted = {text for text, one in seen_tensors(context).items() if one.is_inference}
    for file, statement in raised_at(context):
        if isinstance(statement, (ast.For, ast.While, ast.With, ast.If, ast.FunctionDef)):
            continue
        read = [node for node in walk(statement) if isinstance(node, _READ) and _is_read(node, wanted)]
        if read:
            kept = kept_value(Value(read[0], file), context.program)
            yield Proposal(
                edits=tuple(put_method(file, node, ".clone()") for node in read),
                culprit=culprit_of(*kept, _MADE.format(ast.unparse(read[0])))
                if kept is not None
                else culprit_of(file, read[0], f"trains on `{ast.unparse(read[0])}`, which was made in inference mode"),
                belief=0.0,
                is_origin=kept is not None,
            )
        elif "nference tensor" in message_of(context):
            yield from _asked_for(file, statement, context)


def _asked_for(file: SourceFile, statement: ast.stmt, context: Context) -> Iterator[Proposal]:
    """What the statement asks a method for, `self.text.bank()`, which no report can look at: the only one that keeps something."""
    calls = [node for node in walk(statement) if isinstance(node, ast.Call)]
    found = [(node, kept_value(Value(node, file), context.program)) for node in calls]
    kept = [
        (node, made)
        for node, made in found
        if made is not None and is_made_on_demand(made[1], made[0], context.program)
    ]
    if len({ast.unparse(node) for node, _ in kept}) == 1:
        yield Proposal(
            edits=tuple(put_method(file, node, ".clone()") for node, _ in kept),
            culprit=culprit_of(*kept[0][1], _MADE.format(ast.unparse(kept[0][0]))),
            belief=-0.5,
            is_origin=True,
        )


def _is_read(node: ast.Name | ast.Attribute | ast.Subscript, wanted: set[str]) -> bool:
    return isinstance(node.ctx, ast.Load) and ast.unparse(node) in wanted
