"""Points at the logarithm that made data infinite, and at the option that chose it. No edit: the data decides.

What stands for the logarithm of 0 (log1p, a floor, rows that are left out) trains on other data each time. NumPy says where it
took it, also where the program has it say nothing. What torch or a table of another library took, or a loader's worker, is looked for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of
from explainer.fix.data.cell import cells
from explainer.fix.data.warning import Heard, find_heard, is_replaced
from explainer.model.trace import BAD_INPUT, LOGARITHM, MINUS_INFINITY
from explainer.source.file import SourceFile
from explainer.source.setting.flow import settings_behind
from explainer.source.setting.setting import Setting
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

MAX_LINES = 3
_NAMES = ("log", "log2", "log10")
_FUNCTIONS = tuple(f"{library}.{name}" for library in ("numpy", "torch") for name in _NAMES)
_TAKES = frozenset({"get", "pop"})
_FLOORS = frozenset({"clip", "clamp", "clamp_min", "maximum", "max", "clip_min", "fill_null"})
_WHY = "takes the logarithm of data that holds 0"


def propose(context: Context) -> Iterator[Proposal]:
    """The option before the line that it chooses, then the line."""
    told = {one.value for one in context.incident.facts if one.name == BAD_INPUT}
    is_after = context.incident.fact("traced_data_after_logarithm") is not None
    if is_after and next(cells(context), None) is not None:
        return  # the table itself lacks numbers
    belief = 2.0 if LOGARITHM in told or is_after else 0.5
    heard = [one for one in find_heard(context) if one.operation in _NAMES and one.words == "divide by zero"]
    for one in heard:
        yield from _options(one, context, belief)
        yield Proposal(edits=(), culprit=culprit_of(one.file, one.node, _WHY), belief=belief)
    if not heard and told & {LOGARITHM, MINUS_INFINITY}:
        found = [(file, node) for file in context.program.parsed() for node in _logarithms(file, context)]
        for number, (file, node) in enumerate(found[:MAX_LINES]):
            why = "takes a logarithm, which is minus infinity where the data holds 0"
            belief = (2.0 if len(found) == 1 else 1.2) - 0.1 * number
            yield Proposal(edits=(), culprit=culprit_of(file, node, why), belief=belief)


def _options(heard: Heard, context: Context, belief: float) -> Iterator[Proposal]:
    """The option by which a function was taken out of a table or of NumPy: `SCALES[cfg["scale"]](rows)`."""
    found: dict[tuple[str, tuple[int, int]], Setting] = {}
    for node in (heard.node.func, *heard.node.args) if isinstance(heard.node, ast.Call) else ():
        for key, file in _keys(node, heard.file, context):
            settings = settings_behind(key, file, context.program)
            found |= {(one.file.path, one.span): one for one in settings if "log" in str(one.value).lower()}
    if len(found) == 1:
        (one,) = found.values()
        where = f"{heard.file.path.rpartition('/')[2]}:{heard.node.lineno}"
        why = f"chooses a logarithm for data that holds 0, at {where}"
        yield Proposal(edits=(), culprit=culprit_at(one.file, one.span, why), belief=belief + 0.2)


def _keys(node: ast.expr, file: SourceFile, context: Context) -> Iterator[tuple[ast.expr, SourceFile]]:
    """What a function is asked for by, wherever it was taken out: a name may stand for it."""
    for one in (Value(node, file), *resolver_of(context.program).behind(Value(node, file))):
        taken = one.node
        if isinstance(taken, ast.Subscript):
            yield taken.slice, one.file
        elif isinstance(taken, ast.Call) and getattr(taken.func, "attr", "") in _TAKES and taken.args:
            yield taken.args[0], one.file
        elif isinstance(taken, ast.Call) and getattr(taken.func, "id", "") == "getattr" and len(taken.args) > 1:
            yield taken.args[1], one.file


def _logarithms(file: SourceFile, context: Context) -> Iterator[ast.expr]:
    """The logarithms outside of modules and of functions that compute a loss, of what no floor and no sum keeps from 0."""
    names = context.program.names(file)
    for node in file.walk():
        if not isinstance(node, ast.Call) or (names.class_of(node) is not None and _is_module(node, file, context)):
            continue
        function = file.enclosing(node, ast.FunctionDef)
        if "loss" in getattr(function, "name", "").lower():
            continue
        given = _argument(node, names.qualified(node.func) or "")
        if given is not None and not _is_kept_positive(given) and not is_replaced(node, file, context):
            yield node


def _argument(call: ast.Call, called: str) -> ast.expr | None:
    """What a call takes the logarithm of: `torch.log(x)`, `x.log()`."""
    if called in _FUNCTIONS:
        return next(iter(call.args), None)
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr in _NAMES and not (call.args or call.keywords)
    return call.func.value if is_method and isinstance(call.func, ast.Attribute) else None


def _is_module(node: ast.AST, file: SourceFile, context: Context) -> bool:
    names = context.program.names(file)
    owner = names.class_of(node)
    return owner is not None and any("Module" in (names.qualified(base) or "") for base in owner.bases)


def _is_kept_positive(node: ast.expr) -> bool:
    """Whether something is added to a value, or it has a floor."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add)
    called = node.func if isinstance(node, ast.Call) else None
    return (getattr(called, "attr", "") or getattr(called, "id", "")) in _FLOORS
