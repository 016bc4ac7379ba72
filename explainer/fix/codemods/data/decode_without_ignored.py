"""`tokenizer.batch_decode(ids)` becomes `tokenizer.batch_decode(np.where(ids < 0, tokenizer.pad_token_id, ids))`.

Labels, and predictions that a Trainer has joined, are padded with -100, which no tokenizer decodes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand, spell
from explainer.source.name import dotted_name
from explainer.source.tree import walk

_NEGATIVE = re.compile(
    r"too small to fit in target type|can't convert negative int to unsigned|out of range integral type"
)
_DECODES = ("batch_decode", "decode")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each call of the failing statement that decodes ids."""
    if not _NEGATIVE.search(message_of(context)):
        return
    for file, statement in failing_statements(context)[:1]:
        names = context.program.names(file)
        where = spell(names, "numpy.where")
        has_numpy = where.partition(".")[0] in names.imports
        for node in walk(statement):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
                continue
            owner, ids = dotted_name(node.func.value), node.args[0]
            if node.func.attr not in _DECODES or owner is None or isinstance(ids, ast.Starred):
                continue
            text = file.segment(ids)
            if has_numpy:
                kept = f"{where}({operand(file, ids)} < 0, {owner}.pad_token_id, {text})"
            elif node.func.attr == "batch_decode":
                kept = f"[[one for one in row if one >= 0] for row in {text}]"
            else:
                kept = f"[one for one in {text} if one >= 0]"
            yield Proposal(
                edits=(edit_of(file, ids, kept),),
                culprit=culprit_of(file, node, f"decodes `{text}`, which is padded with -100"),
                belief=2.0,
            )
