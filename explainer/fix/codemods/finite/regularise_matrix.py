"""`torch.linalg.cholesky(a)` becomes `torch.linalg.cholesky(a + 1e-3 * torch.eye(n))`: a singular matrix gets a positive diagonal.

Only the line, where steps went well before, which the added number would change too: a batch of fewer rows than columns may be left
out, be larger, or get a ridge of a size that is the owner's to say. So too where the logarithm of its determinant is taken: that
of a singular matrix is what the added number makes it, and so is a likelihood.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.blame import anomaly_node, crash_frames, nearness
from explainer.fix.clue.crash import has_stepped
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand, spell
from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.tree import walk
from explainer.source.value.flow import flow_of

_CALLS = (
    "torch.linalg.cholesky",
    "torch.linalg.inv",
    "torch.inverse",
    "torch.cholesky",
    "torch.linalg.slogdet",
    "torch.logdet",
)
_LOGARITHMS = frozenset({"slogdet", "logdet"})
_CHANGES = "changes the result by the order of the added number"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each factorisation of a matrix that depends on parameters."""
    if not context.has_failed:
        return
    flow = flow_of(context.program)
    is_late = has_stepped(context)
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            if not isinstance(node, ast.Call) or not names.is_call(node, *_CALLS) or not node.args:
                continue
            matrix = node.args[0]
            if isinstance(matrix, ast.BinOp) or not flow.reach_of(matrix, file):
                continue
            culprit = culprit_of(file, node, f"factorises `{file.segment(matrix)}`, which may be singular")
            if is_late or _takes_log_determinant(node, file, names):
                yield Proposal(edits=(), culprit=culprit, belief=nearness(file, node, context))
                continue
            text = operand(file, matrix)
            eye = f"{spell(names, 'torch.eye')}({text}.shape[-1], dtype={text}.dtype, device={text}.device)"
            near = 1.0 if node.lineno in crash_frames(file, context) else 0.0
            yield Proposal(
                edits=(edit_of(file, matrix, f"{text} + 1e-3 * {eye}"),),
                culprit=culprit,
                belief=near + (1.0 if "Linalg" in anomaly_node(context) else 0.0) + nearness(file, node, context),
                applicability="unsafe",
                because=_CHANGES,
            )


def _takes_log_determinant(call: ast.Call, file: SourceFile, names: Names) -> bool:
    """Whether a call gives the logarithm of a determinant, or its function takes that of a factor's diagonal."""
    if (names.qualified(call.func) or "").rpartition(".")[2] in _LOGARITHMS:
        return True
    texts = [
        ast.unparse(node)
        for node in walk(names.function_of(call) or file.statement(call))
        if isinstance(node, ast.Call)
    ]
    return any("diag" in one and re.search(r"\blog\(", one) for one in texts)
