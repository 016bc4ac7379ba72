"""Takes the values for NumPy, plots and logs out of the graph: `x.detach().cpu().numpy()`, `losses.append(loss.item())`.

Not where the array goes on into a loss: there the step belongs in torch. What code that makes data hands to NumPy is detached
where a module's output is taken, unless something trains that module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.failure import asked_values, failing_statements
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.data.array import data_arrays, is_data_code, is_list
from explainer.fix.graph.uncut import uncut
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.cut import ARRAY, LIBRARY, Cut
from explainer.source.name import bound_names, dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, parameters_of, scope_of
from explainer.source.value.flow import arguments_of
from explainer.source.value.provenance import Trace, provenance_of
from explainer.source.value.resolve import resolver_of

_MOVES = frozenset({"cpu", "to", "float", "double", "half", "contiguous"})
_SCALARS = frozenset({"mean", "sum", "item", "norm", "cross_entropy", "mse_loss", "nll_loss", "l1_loss", "backward"})
_DATA = "a data set makes values, and nothing trains the module that computes these"
_TELLS = frozenset(
    {"print", "log", "log_dict", "log_metrics", "info", "debug", "warning", "write", "add_scalar", "set_postfix"}
)
_FILLS = frozenset({"append", "extend", "insert"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each value with a graph that the failing statement hands to NumPy."""
    if not context.has_failed:
        return
    chains = _chains_into_losses(context)
    for file, statement in failing_statements(context):
        data = _data(statement, file, context)
        if data is not None:
            yield from data
            return
        found = [*_arrays(statement, file, context), *_collected(statement, file, context)]
        if _is_together(found, statement, file, chains, context):
            yield _joined([_proposal(value, node, file, context) for value, node in found])
            return
        for value, node in found:
            feeding = [chain for chain in chains if any(cut.node is node for cut in chain)]
            handed = _handed_in(value, file, context)
            if _meets_tensors(statement, file, context):
                continue
            if feeding:
                yield from _in_torch(feeding[0], context)
            elif handed:
                why = "hands a tensor that requires grad to a function that makes an array of it"
                edits = tuple(put_method(where, argument, ".detach()") for where, argument in handed)
                yield Proposal(edits=edits, culprit=culprit_of(*handed[0], why), belief=2.0)
            else:
                yield _proposal(value, node, file, context)
        if found:
            return
        yield from _for_a_metric(statement, file, context)
        yield from _for_a_record(statement, file, context)


def _for_a_record(statement: ast.stmt, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`self.rows.append({k: np.asarray(v) for k, v in values.items()})`: a tensor that was seen there is kept as values alone."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    is_kept = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _FILLS
    torch = next((name for name, full in context.program.names(file).imports.items() if full == "torch"), None)
    for value, node in _operands(statement, file, context) if is_kept and torch is not None else ():
        if isinstance(value, ast.Name) and value in node.args and seen(value, context) is not None:
            new = f"{value.id}.detach() if {torch}.is_tensor({value.id}) else {value.id}"
            why = "asks for the array of a tensor that requires grad, to keep it"
            yield Proposal(edits=(edit_of(file, value, new),), culprit=culprit_of(file, node, why), belief=1.4)


def _for_a_metric(statement: ast.stmt, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """What callers hand to a function that makes an array of it, and only tell: `self.log("auc", roc_auc(scores, y))`.

    For values of which the source does not say where they come from, as those of a history that a class keeps.
    """
    function = context.program.names(file).function_of(statement)
    calls = resolver_of(context.program).calls_of(function, file) if function is not None else []
    if function is None or not calls or not all(_is_only_told(call, where) for where, call in calls):
        return
    for value, _ in _operands(statement, file, context):
        if not isinstance(value, ast.Name) or value.id not in parameters_of(function):
            continue
        handed = [
            (where, argument)
            for where, call in calls
            for name, argument in arguments_of(call, function)
            if name == value.id
        ]
        if handed:
            why = "hands a tensor that requires grad to a function that makes an array of it, for what is only told"
            edits = tuple(put_method(where, argument, ".detach()") for where, argument in handed)
            yield Proposal(edits=edits, culprit=culprit_of(*handed[0], why), belief=1.6)


def _is_only_told(call: ast.Call, file: SourceFile) -> bool:
    """Whether what a call gives is printed or logged, by itself or by its name, and is nothing that is computed with."""
    statement = file.statement(call)
    if isinstance(statement, ast.Expr):
        return _is_told(call, file)
    names = list(bound_names(statement)) if isinstance(statement, ast.Assign) else []
    if len(names) != 1:
        return False
    scope = scope_of(call, file)
    reads = [one for one in walk(scope) if isinstance(one, ast.Name) and one.id == names[0]]
    reads = [one for one in reads if isinstance(one.ctx, ast.Load)]
    return bool(reads) and all(_is_told(one, file) for one in reads)


def _is_told(node: ast.expr, file: SourceFile) -> bool:
    """Whether the nearest call around an expression prints or logs it."""
    for above in file.around(node):
        if isinstance(above, ast.Call):
            return (dotted_name(above.func) or "").rpartition(".")[2] in _TELLS
        if isinstance(above, ast.stmt):
            return False
    return False


def _data(statement: ast.stmt, file: SourceFile, context: Context) -> list[Proposal] | None:
    """What is proposed for code that makes data; None for other code, and where no module gives its operands a graph."""
    found = list(_operands(statement, file, context)) if is_data_code(statement, file, context) else []
    places = data_arrays([value for value, _ in found], file, context) if found else None
    if not places:
        return None if places is None else []
    why = "asks for the array of what a module computes, which has a graph"
    edits = tuple(put_method(where, one, ".detach()") for where, one in places)
    return [Proposal(edits=edits, culprit=culprit_of(file, found[0][1], why), belief=2.0, because=_DATA)]


def _is_together(
    found: list[tuple[ast.expr, ast.expr]],
    statement: ast.stmt,
    file: SourceFile,
    chains: list[tuple[Cut, ...]],
    context: Context,
) -> bool:
    """Whether several values are handed to NumPy in one statement, each for its values alone: one of them detached helps nothing."""
    asked = {node for _, node in _operands(statement, file, context)}
    return (
        len(found) > 1
        and all(node in asked and not _handed_in(value, file, context) for value, node in found)
        and not any(cut.node in asked for chain in chains for cut in chain)
        and not _meets_tensors(statement, file, context)
    )


def _joined(proposals: list[Proposal]) -> Proposal:
    return replace(proposals[0], edits=tuple(dict.fromkeys(edit for one in proposals for edit in one.edits)))


def _meets_tensors(statement: ast.stmt, file: SourceFile, context: Context) -> bool:
    """Whether what a statement binds is computed with something of the forward again: `mu + eps * std` for `std = np.exp(logvar)`."""
    function = context.program.names(file).function_of(statement)
    names = set(bound_names(statement)) if isinstance(statement, ast.Assign) else set()
    if function is None or not names:
        return False
    for node in walk(function):
        sides = [node.left, node.right] if isinstance(node, ast.BinOp) else []
        for one, other in (sides, sides[::-1]) if sides else ():
            is_read = any(isinstance(each, ast.Name) and each.id in names for each in walk(one))
            if is_read and provenance_of(context.program).trace(Value(other, file)).live:
                return True
            drawn = other if isinstance(other, ast.Name) else None
            made = [each.node for each in bounds_of(function) if drawn is not None and each.name == drawn.id]
            if is_read and any(_is_torch(each, file, context) for each in made):
                return True
    return False


def _is_torch(node: ast.expr, file: SourceFile, context: Context) -> bool:
    called = context.program.names(file).qualified(node.func) if isinstance(node, ast.Call) else None
    return (called or "").startswith("torch.")


def _chains_into_losses(context: Context) -> list[tuple[Cut, ...]]:
    """The chains of cuts on the way to every loss of the program whose graph ends in an array."""
    traces: list[Trace] = [provenance_of(context.program).trace(one) for one in asked_values(context.program)]
    return [chain for trace in traces for chain in trace.chains if {cut.kind for cut in chain} & {ARRAY, LIBRARY}]


def _in_torch(chain: tuple[Cut, ...], context: Context) -> Iterator[Proposal]:
    edits: list[Edit] = []
    for cut in chain:
        found = uncut(cut, context.program)
        if found is None:
            return
        edits += [one for one in found if one not in edits]
    first = chain[0]
    yield Proposal(
        edits=tuple(edits),
        culprit=culprit_of(first.file, first.node, "computes a part of the loss in NumPy, where no graph is recorded"),
        belief=1.5,
    )


def _arrays(statement: ast.stmt, file: SourceFile, context: Context) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`x.cpu().numpy()` and `np.array(x)` in the failing statement: the tensor and the call."""
    provenance = provenance_of(context.program)
    for value, node in _operands(statement, file, context):
        for one in value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]:
            if not is_list(one, file) and provenance.trace(Value(one, file)).live:
                yield one, node


def _operands(statement: ast.stmt, file: SourceFile, context: Context) -> Iterator[tuple[ast.expr, ast.Call]]:
    names = context.program.names(file)
    for node in walk(statement):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr == "numpy":
            yield node.func.value, node
        elif (names.qualified(node.func) or "").startswith("numpy.") and node.args:
            yield node.args[0], node


def _handed_in(value: ast.expr, file: SourceFile, context: Context) -> list[tuple[SourceFile, ast.expr]]:
    """Where a value is a function's parameter, what its callers hand in that has a graph: the function may get arrays too.

    The message comes of tensors on the CPU only: torch refuses those of a GPU first.
    """
    function = scope_of(value, file)
    if not isinstance(value, ast.Name) or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return []
    if value.id not in parameters_of(function) or any(one.name == value.id for one in bounds_of(function)):
        return []
    provenance = provenance_of(context.program)
    return [
        (where, argument)
        for where, call in resolver_of(context.program).calls_of(function, file)
        for name, argument in arguments_of(call, function)
        if name == value.id and provenance.trace(Value(argument, where)).live
    ]


def _collected(statement: ast.stmt, file: SourceFile, context: Context) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`losses.append(loss)` of a list that the failing statement reads."""
    names = {dotted_name(one) for one in walk(statement) if isinstance(one, (ast.Name, ast.Attribute))}
    for source in context.program.parsed():
        for node in source.walk() if source is file else ():
            is_fill = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS
            if not is_fill or dotted_name(node.func.value) not in names or not node.args:  # type: ignore[attr-defined]
                continue
            assert isinstance(node, ast.Call)
            value = node.args[-1]
            for one in value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]:
                if provenance_of(context.program).trace(Value(one, file)).live:
                    yield one, node


def _proposal(value: ast.expr, node: ast.expr, file: SourceFile, context: Context) -> Proposal:
    is_kept = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _MOVES:
        value = value.func.value
    method = ".item()" if is_kept and _is_scalar(value, file, context) else ".detach()"
    if not is_kept and not (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy"
    ):
        method = ".detach().cpu().numpy()"
    why = (
        "keeps a tensor with its graph in the list" if is_kept else "asks for the array of a tensor that requires grad"
    )
    return Proposal(edits=(put_method(file, value, method),), culprit=culprit_of(file, node, why), belief=2.0)


def _is_scalar(value: ast.expr, file: SourceFile, context: Context) -> bool:
    """Whether a value is a loss: its backward is asked for, or it is a mean, a sum or a criterion's result."""
    name = dotted_name(value)
    if isinstance(value, ast.Call):
        return str(dotted_name(value.func) or getattr(value.func, "attr", "")).rpartition(".")[2] in _SCALARS
    asked = any(
        isinstance(one, ast.Attribute) and one.attr == "backward" and dotted_name(one.value) == name
        for one in file.walk()
    )
    bound = [one.node for one in bounds_of(scope_of(value, file)) if one.name == name]
    return asked or any(isinstance(one, ast.Call) and _is_scalar(one, file, context) for one in bound)
