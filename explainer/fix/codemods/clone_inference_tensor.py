"""An inference tensor that a library handed out is cloned where training uses it: `probe(codes.clone())`.

Where the program itself switches inference mode on, `no_grad` in its place is the better cure. Which name holds such a tensor
only the live program can say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.crash import raised_at
from explainer.fix.rewrite import put_method
from explainer.fix.seen import seen_tensors
from explainer.source.tree import walk

_READ = (ast.Name, ast.Attribute, ast.Subscript)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each statement that raised and reads inference tensors."""
    wanted = {text for text, one in seen_tensors(context).items() if one.is_inference}
    for file, statement in raised_at(context) if wanted else ():
        compound = isinstance(statement, (ast.For, ast.While, ast.With, ast.If, ast.FunctionDef))
        read = (
            [] if compound else [node for node in walk(statement) if isinstance(node, _READ) and _is_read(node, wanted)]
        )
        if read:
            yield Proposal(
                edits=tuple(put_method(file, node, ".clone()") for node in read),
                culprit=culprit_of(
                    file, read[0], f"trains on `{ast.unparse(read[0])}`, which was made in inference mode"
                ),
                belief=0.0,
            )


def _is_read(node: ast.Name | ast.Attribute | ast.Subscript, wanted: set[str]) -> bool:
    return isinstance(node.ctx, ast.Load) and ast.unparse(node) in wanted
