"""`_, pooled = self.bert(ids, mask)` becomes `self.bert(ids, mask, return_dict=False)`: what is unpacked is a tuple again.

Since transformers 4 a model gives an object with keys, which unpacks into their names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.blame import nearness
from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import add_argument
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_REFUSED = ("must be Tensor, not str", "'str' object has no attribute")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each model of transformers whose outputs are unpacked."""
    if not any(one in message_of(context) for one in _REFUSED):
        return
    for file in context.program.parsed():
        for node in file.walk():
            call = node.value if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) else None
            if not isinstance(call, ast.Call) or {None, "return_dict"} & {one.arg for one in call.keywords}:
                continue
            made = resolver_of(context.program).constructors_of(Value(call.func, file))
            kinds = [
                context.program.names(one.file).qualified(one.node.func) or "" if isinstance(one.node, ast.Call) else ""
                for one in made
            ]
            if kinds and all(one.startswith("transformers.") for one in kinds):
                yield Proposal(
                    edits=(add_argument(file, call, "return_dict=False"),),
                    culprit=culprit_of(file, call, "gives an object with keys, which unpacks into their names"),
                    belief=2.5 + nearness(file, call, context),
                    is_origin=True,
                )
