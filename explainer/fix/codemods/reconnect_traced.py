"""Takes out the cut that a trace saw on the way to the loss, where the source alone does not show that a tensor comes by.

`torch.tensor([float(x) for x in losses])` in a helper may be given numbers: that these were tensors which required grad is
what the trace adds. The line is read as in `reconnect_graph`, which follows the loss itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.trace import traced_statements
from explainer.fix.uncut import uncut
from explainer.model.patch import Edit
from explainer.model.trace import CUT, STARVING_CUT
from explainer.source.cut import ARRAY, COPY, DATA, DETACH, LIBRARY, VALUE, Cut, cut_of
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import children

_VALUES = frozenset((DETACH, DATA, VALUE, ARRAY, COPY, LIBRARY))
_ON_PURPOSE = re.compile(
    r"target|teacher|label|baseline|old|ema|momentum|advantage|next|prev|frozen|reference|ref_|anchor|log|print|metric",
    re.IGNORECASE,
)


_ONE_OF = "several lines keep the same parameters from training: which of them is not meant is the author's to say"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each traced line that takes values out of the graph."""
    seen: set[ast.stmt] = set()
    for kind in (CUT, STARVING_CUT):
        for line, file, statement in traced_statements(kind, context):
            if statement in seen or (kind == STARVING_CUT and _is_write(statement)):
                continue  # what a write goes through: `write_parameter_seen` asks whether torch allows it without
            seen.add(statement)
            edits = _uncut(list(_cuts(statement, file, context.program)), context.program)
            if edits:
                belief = 0.5 - (1.5 if _ON_PURPOSE.search(file.line(line.line)) else 0.0)
                is_one_of = kind == STARVING_CUT and line.is_guess
                yield Proposal(
                    edits=edits,
                    culprit=culprit_of(file, statement, line.says),
                    belief=belief,
                    applicability="display" if is_one_of else None,
                    because=_ONE_OF if is_one_of else None,
                )


def _is_write(statement: ast.stmt) -> bool:
    """Whether a statement writes a tensor in place."""
    if isinstance(statement, ast.Assign):
        return any(isinstance(one, ast.Subscript) for one in statement.targets)
    call = statement.value if isinstance(statement, ast.Expr) else None
    is_method = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_")
    return is_method or isinstance(statement, ast.AugAssign)


def _cuts(statement: ast.stmt, file: SourceFile, program: Program) -> Iterator[Cut]:
    queue: list[ast.AST] = [statement]
    while queue:
        node = queue.pop(0)
        cut = cut_of(node, file, program) if isinstance(node, ast.expr) else None
        if cut is not None and cut.kind in _VALUES:
            yield cut
        queue.extend(one for one in children(node) if not isinstance(one, ast.stmt))


def _uncut(cuts: list[Cut], program: Program) -> tuple[Edit, ...]:
    """The edits of all cuts of a line; none where one of them has no form that keeps the graph."""
    edits: list[Edit] = []
    for cut in cuts:
        found = uncut(cut, program)
        if found is None:
            return ()
        edits += [one for one in found if one not in edits]
    return tuple(edits)
