"""A linear layer gets the width of what reaches it: `nn.Linear(256, 10)` becomes `nn.Linear(196, 10)`, by the shapes in the message.

Only where exactly one linear layer of the program has the width that the message names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.number import number_of

_SHAPES = re.compile(r"\((\d+)x(\d+) and (\d+)x(\d+)\)")


def propose(context: Context) -> Iterator[Proposal]:
    """The edit of the one layer that was built for another width."""
    shapes = next((found for one in context.incident.exceptions if (found := _SHAPES.search(one.message))), None)
    if shapes is None:
        return
    got, wanted, out = int(shapes.group(2)), int(shapes.group(3)), int(shapes.group(4))
    layers = [one for one in _linears(context) if one[2] == wanted]
    exact = [one for one in layers if number_of(one[1].args[1], context.program.names(one[0])) in {None, out}]
    if len(exact) != 1:
        return
    file, call, _ = exact[0]
    yield Proposal(
        edits=(edit_of(file, call.args[0], str(got)),),
        culprit=culprit_of(file, call, f"is built for {wanted} features and gets {got}"),
        belief=1.0,
        applicability="unsafe",
        because="changes the number of parameters, so that older state dicts no longer fit; right only where the input is as it was meant",
    )


def _linears(context: Context) -> Iterator[tuple[SourceFile, ast.Call, float]]:
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            if isinstance(node, ast.Call) and names.is_call(node, "torch.nn.Linear") and len(node.args) > 1:
                width = number_of(node.args[0], names)
                if width is not None:
                    yield file, node, width
