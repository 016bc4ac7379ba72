"""Points at the data of a program where values that are not finite come in, and at the lines that read it. No edit: the data decides.

A cell without a number in a table beside the program comes first, then the logarithm or division at which NumPy warned, or would have,
then a line that makes NaN of such a cell: `float(text or "nan")`, `to_numeric(..., errors="coerce")`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.data.cell import MAX_LINES, READERS, cells
from explainer.fix.data.warning import find_heard
from explainer.model.trace import BAD_INPUT, OF_DATA
from explainer.source.file import SourceFile

_ANYTHING = ("torch.load", "json.load", "pickle.load", "numpy.load")  # which read settings and checkpoints as well
# What a trace says where an operation of the program made it, of data that were finite.
_MADE = ("traced_nan_without_graph", "traced_nan_of_finite", "traced_infinity_of_finite")
_SETTINGS = ("config", "settings", "args", "options", "params", "checkpoint", "state", "ckpt", "yaml")


def propose(context: Context) -> Iterator[Proposal]:
    """The calls that read data; those that by their words read settings or a checkpoint are left out."""
    traced = any(one.name == BAD_INPUT and one.value in OF_DATA for one in context.incident.facts)
    if not traced and context.incident.fact("live_bad_data") is None:
        return
    if not traced and any(context.incident.fact(name) is not None for name in _MADE):
        return  # what was read was finite
    yield from cells(context)
    for one in find_heard(context):
        why = f"makes what is not finite of the data: {one.words}"
        yield Proposal(edits=(), culprit=culprit_of(one.file, one.node, why), belief=1.6)
    for file in context.program.parsed():
        for node in [one for one in file.walk() if _fills(one, file, context)][:MAX_LINES]:
            yield Proposal(
                edits=(), culprit=culprit_of(file, node, "makes NaN of what holds no number in the data"), belief=1.5
            )
    found = [(file, node) for file in context.program.parsed() for node in file.walk() if _reads(node, file, context)]
    for number, (file, node) in enumerate(found[:MAX_LINES]):
        yield Proposal(
            edits=(), culprit=culprit_of(file, node, "reads the data that is not finite"), belief=1.0 - 0.1 * number
        )


def _reads(node: ast.AST, file: SourceFile, context: Context) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = context.program.names(file).qualified(node.func) or ""
    if not called.startswith(READERS):
        return False
    function = file.enclosing(node, ast.FunctionDef)
    words = f"{file.segment(file.statement(node))} {getattr(function, 'name', '')}".lower()
    return not called.startswith(_ANYTHING) or not any(one in words for one in _SETTINGS)


def _fills(node: ast.AST, file: SourceFile, context: Context) -> bool:
    """Whether an expression is NaN where the data has no number."""
    if isinstance(node, ast.Call):
        return any(one.arg == "errors" and getattr(one.value, "value", None) == "coerce" for one in node.keywords)
    if isinstance(node, ast.Return):
        return (
            node.value is not None
            and isinstance(file.parents.get(node), ast.ExceptHandler)
            and _is_nan(node.value, file, context)
        )
    other = node.orelse if isinstance(node, ast.IfExp) else node.values[-1] if isinstance(node, ast.BoolOp) else None
    kinds = (node.body, node.orelse) if isinstance(node, ast.IfExp) else (other,)
    if isinstance(node, ast.BoolOp) and not isinstance(node.op, ast.Or):
        return False
    return any(_is_nan(one, file, context) for one in kinds if one is not None)


def _is_nan(node: ast.expr, file: SourceFile, context: Context) -> bool:
    """`"nan"`, `float("nan")`, `math.nan`, `np.nan`."""
    if isinstance(node, ast.Call) and len(node.args) == 1:
        return getattr(node.func, "id", "") == "float" and _is_nan(node.args[0], file, context)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value.lower() == "nan"
    return context.program.names(file).qualified(node) in ("math.nan", "numpy.nan", "numpy.NaN", "torch.nan")
