"""`tokenizer(texts, padding=True, max_length=n)` in a `map` becomes `padding="max_length"`, where its rows were of several lengths.

`datasets.map` hands over a thousand rows at a time, and `padding=True` makes each thousand as long as its own longest text: a batch
of two of them cannot be stacked. Only where the call has a length to pad to.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.program import Program
from explainer.source.tree import walk

_RAGGED = re.compile(r"stack expects each tensor to be equal size|expected sequence of length \d+ at dim 1")
_LONGEST = (True, "longest")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each call of a tokenizer in a function that a data set is mapped with."""
    if not _RAGGED.search(message_of(context)):
        return
    mapped = set(_mapped(context.program))
    for file, function in context.program.functions():
        for node in walk(function) if function.name in mapped else ():
            given = {one.arg: one.value for one in node.keywords} if isinstance(node, ast.Call) else {}
            padding, length = given.get("padding"), given.get("max_length")
            if isinstance(padding, ast.Constant) and padding.value in _LONGEST and length is not None:
                yield Proposal(
                    edits=(edit_of(file, padding, '"max_length"'),),
                    culprit=culprit_of(file, node, "pads each block of rows to its own longest one"),
                    belief=2.0,
                )


def _mapped(program: Program) -> Iterator[str]:
    """The names of the functions that are given to a `map` of a data set."""
    for file in program.parsed():
        for attribute in file.attributes.get("map", ()):
            call = file.parents.get(attribute)
            for one in call.args[:1] if isinstance(call, ast.Call) else ():
                if isinstance(one, ast.Name):
                    yield one.id
