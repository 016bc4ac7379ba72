"""How much a failure's own words point at one hazard, or at one line, among those of a program."""

from __future__ import annotations

import ast
import re

from explainer.fix.codemod import Context
from explainer.source.file import SourceFile
from explainer.source.graph.hazard import ARC, LOG, NODES, QUOTIENT, ROOT, Hazard
from explainer.source.value.flow import Reach

# The node that prints NaN is often the next one below: the root's own gradient is inf, 0 times inf is NaN.
# Nodes that hand on a NaN of the forward pass: where it began does not follow from them.
_ANY = {
    "Addmm",
    "Mm",
    "Bmm",
    "Convolution",
    "NativeBatchNorm",
    "NativeLayerNorm",
    "NllLoss",
    "LogSoftmax",
    "Add",
    "Embedding",
}
_BELOW = {
    "Pow",
    "Mul",
    "MseLoss",
    "Sub",
    "Sum",
    "LinalgVectorNorm",
    "Square",
    "Mean",
    "Index",
    "Select",
    "Softmax",
    "Sigmoid",
}


def blame(hazard: Hazard, context: Context) -> float:
    """The belief that a hazard is where the NaN began, in log-odds."""
    is_known = hazard.kind in (ROOT, LOG, ARC) or hazard.sign.not_negative
    belief = (0.8 if is_known else 0.3) if hazard.reach == Reach.SURE else -0.5
    node = anomaly_node(context)
    if node in NODES[hazard.kind]:
        belief += 1.5
    elif node in _BELOW:
        belief += 0.3 if hazard.kind in (ROOT, LOG, QUOTIENT) else 0.0
    elif node and node not in _ANY and not node.startswith(("Compiled", "Script", "Differentiable")):
        belief -= 0.8
    if hazard.sign.not_negative and hazard.kind in (ROOT, LOG, QUOTIENT):
        belief += 0.4
    return belief + nearness(hazard.file, hazard.node, context)


def anomaly_node(context: Context) -> str:
    """The node that returned NaN, without `Backward0`; "" where none is named."""
    node = context.fields.get("node") or context.fields.get("op") or context.incident.anomaly_node or ""
    return re.sub(r"(?:Backward)?\d*$", "", str(node))


def nearness(file: SourceFile, node: ast.expr | ast.stmt, context: Context) -> float:
    """Forward frames of anomaly mode that name the line, or its function, speak for it; others a little against it."""
    frames = [frame for frame in context.incident.forward_frames if frame.library is None and frame.line]
    if not frames:
        return 0.0
    statement = file.statement(node)
    here = [frame for frame in frames if is_file(frame.file, file)]
    if any(statement.lineno <= (frame.line or 0) <= (statement.end_lineno or 0) for frame in here):
        return 1.5
    function = file.enclosing(statement, ast.FunctionDef, ast.AsyncFunctionDef)
    if function is not None and any(frame.function == getattr(function, "name", None) for frame in here):
        return 0.5
    return 0.0 if anomaly_node(context) in _ANY else -0.5


def is_file(name: str, file: SourceFile) -> bool:
    """Whether a frame's path means a file, by its last part."""
    return file.path.replace("\\", "/").rpartition("/")[2] == name.replace("\\", "/").rpartition("/")[2]


def crash_frames(file: SourceFile, context: Context) -> dict[int, int]:
    """The lines of a file that the traceback names, with their depth: 0 is the user's innermost frame."""
    frames = [frame for frame in reversed(context.frames) if frame.line]
    found: dict[int, int] = {}
    for depth, frame in enumerate(frames):
        if is_file(frame.file, file) and frame.line is not None:
            found.setdefault(frame.line, depth)
    return found


def is_in_crash(node: ast.expr, file: SourceFile, context: Context) -> bool:
    """Whether the traceback names a line of an expression."""
    frames = crash_frames(file, context)
    return any(line in frames for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))
