"""A helper that arrays are given elsewhere computes in torch where it is given a tensor, and in NumPy else.

    return torch.linalg.norm(delta, axis=-1) if isinstance(delta, torch.Tensor) else np.linalg.norm(delta, axis=-1)

`.detach()` would let it run, and take a term out of the loss in silence.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.graph.in_torch import NoForm, Translation
from explainer.fix.splice import splice
from explainer.fix.text.import_line import import_after
from explainer.fix.text.rewrite import spell
from explainer.source.file import SourceFile
from explainer.source.name import Function, bound_names, dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import all_parameters
from explainer.source.value.lineage import before, statements_of
from explainer.source.value.resolve import resolver_of

_MAKERS = ("numpy.asarray", "numpy.array", "numpy.ascontiguousarray")
_COPIES = frozenset({"torch.tensor", "torch.from_numpy", "torch.FloatTensor"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit of the failing statement, where each call of NumPy in it has a form in torch."""
    if not context.has_failed:
        return
    for file, statement in failing_statements(context)[:1]:
        value = statement.value if isinstance(statement, (ast.Return, ast.Assign)) else None
        function = context.program.names(file).function_of(statement)
        if value is None or function is None:
            continue
        if any(isinstance(one, ast.IfExp) for one in walk(value)):
            continue  # a choice already
        calls = resolver_of(context.program).calls_of(function, file)
        if len(calls) < 2 or any(_is_copied(where, call, context) for where, call in calls):
            continue  # one caller alone gives it tensors: then it is torch's; what copies the result cuts the graph all the same
        name = _given(value, function, file, context)
        written = _in_torch(value, file, Translation(function, file, context.program)) if name else None
        if name is None or written is None:
            continue
        tensor = spell(context.program.names(file), "torch.Tensor")
        rest = _behind(statement, function, file, context) if _is_made(statement, file, context) else {}
        if rest is None:
            continue
        kept = dotted_name(statement.targets[0]) if isinstance(statement, ast.Assign) else None
        edits = [edit_of(file, value, f"{written} if isinstance({name}, {tensor}) else {file.segment(value)}")]
        edits += [
            edit_of(file, one, f"{new} if isinstance({kept}, {tensor}) else {file.segment(one)}")
            for one, new in rest.items()
        ]
        if "torch" not in context.program.names(file).imports:
            edits += import_after(file, "import torch")
        yield Proposal(
            edits=tuple(edits),
            culprit=culprit_of(file, value, "computes in NumPy, where no graph is recorded, also for what is trained"),
            belief=2.2,
        )


def _is_made(statement: ast.stmt, file: SourceFile, context: Context) -> bool:
    """`curves = np.asarray(curves)`: what follows computes with the array, or with the tensor that is left as it is."""
    return (
        isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and context.program.names(file).is_call(statement.value, *_MAKERS)
    )


def _behind(made: ast.stmt, function: Function, file: SourceFile, context: Context) -> dict[ast.expr, str] | None:
    """What the function computes in NumPy of what a statement has made, with its form in torch; None where a part has none."""
    names, found, tainted = context.program.names(file), dict[ast.expr, str](), set(bound_names(made))
    translation = Translation(function, file, context.program)
    for statement in statements_of(function):
        if not before(made, statement):
            continue
        calls = [
            one
            for one in walk(statement)
            if isinstance(one, ast.Call)
            and (names.qualified(one.func) or "").startswith("numpy.")
            and tainted & {node.id for node in walk(one) if isinstance(node, ast.Name)}
        ]
        value = statement.value if isinstance(statement, (ast.Return, ast.Assign)) else None
        if calls and value is None:
            return None
        if calls and value is not None:
            written = _in_torch(value, file, translation)
            if written is None:
                return None
            found[value] = written
        if value is not None and tainted & {node.id for node in walk(value) if isinstance(node, ast.Name)}:
            tainted |= set(bound_names(statement))
    return found


def _is_copied(file: SourceFile, call: ast.Call, context: Context) -> bool:
    above = file.parents.get(call)
    return isinstance(above, ast.Call) and (context.program.names(file).qualified(above.func) or "") in _COPIES


def _given(value: ast.expr, function: Function, file: SourceFile, context: Context) -> str | None:
    """The name that a call of NumPy computes with: its whole argument, or the one parameter of the helper in it."""
    names, own = context.program.names(file), all_parameters(function)
    calls = [
        one
        for one in walk(value)
        if isinstance(one, ast.Call) and one.args and (names.qualified(one.func) or "").startswith("numpy.")
    ]
    first = calls[0].args[0] if calls else None
    if isinstance(first, ast.Name):
        return first.id
    read = {node.id for one in calls for node in walk(one) if isinstance(node, ast.Name)} & own
    return read.pop() if len(read) == 1 else None


def _in_torch(value: ast.expr, file: SourceFile, translation: Translation) -> str | None:
    """The expression in torch; None where a part of it has no form there, or nothing of it is NumPy's."""
    try:
        edits = [edit for one in walk(value) if isinstance(one, ast.expr) for edit in translation.of_numpy(one)]
    except NoForm:
        return None
    start, end = file.span(value)
    text = splice(file.text, edits) if edits else None
    return text[start : end + len(text) - len(file.text)] if text is not None else None
