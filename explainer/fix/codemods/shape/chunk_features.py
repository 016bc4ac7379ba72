"""`mean, log_var = encode(x).chunk(2, dim=-1)` for `encode(x).chunk(2)`, which cuts the batch: both cut along the first axis by default.

Where the numbers say so: a layer refused so many times its features as there are parts, or there were fewer rows than parts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.shape.layer_input import read_told
from explainer.fix.text.rewrite import add_argument

_FEWER = re.compile(r"not enough values to unpack \(expected (\d+), got \d+\)")
_CUTS = frozenset({"chunk", "split"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each unpacked cut that says no axis and has as many parts as the numbers tell."""
    message, program = message_of(context), context.program
    told, fewer = read_told(message), _FEWER.search(message)
    raised = {statement for _, statement in raised_at(context)}
    for file in program.parsed() if told or fewer else ():
        names = program.names(file)
        for node in file.walk():
            target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
            call = node.value if isinstance(node, ast.Assign) else None
            if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(call, ast.Call):
                continue
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            is_function = names.is_call(call, f"torch.{name}")
            parts = len(target.elts)
            is_told = bool(
                (told and told.is_last and told.size == parts * told.wanted)
                or (fewer and node in raised and int(fewer[1]) == parts)
            )
            if name in _CUTS and len(call.args) == 1 + is_function and not call.keywords and is_told:
                yield Proposal(
                    edits=(add_argument(file, call, "dim=-1"),),
                    culprit=culprit_of(file, call, f"cuts along the batch: `{name}` says no axis, and takes the first"),
                    belief=2.2,
                )
