"""A loss that the program reduces elsewhere by a function of its own: `masked_mean(criterion(pred, y), batch.mask)` of an evaluation.

Or its sisters, the other terms of the same sum: `average(criterion(energy, e), batch["frames"])` beside `criterion(pitch, p) * batch["voiced"]`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, walk_scope
from explainer.source.value.callee import functions_called
from explainer.source.value.lineage import definitions, reads, scope_of, value_of
from explainer.source.value.resolve import resolver_of


def reduced_by_helper(loss: ast.expr, file: SourceFile, program: Program) -> Iterator[Proposal]:
    """An edit that reduces a loss as the same loss, of the same names, is reduced elsewhere by a function of the program.

    Only where what the function is given besides has the same names here, and the function its own.
    """
    scope = scope_of(loss, file, program)
    if not isinstance(loss, ast.Call) or scope is None:
        return
    known = {one.id for one in walk(scope) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    known |= {one.arg for one in walk(scope) if isinstance(one, ast.arg)}
    found: dict[str, Function] = {}
    for where, call, function in _reducers(program):
        if not _is_same(_first(call, where, program), loss) or call.func.id not in _names_of(file, where):  # type: ignore[attr-defined]
            continue
        others = [*call.args[1:], *(one.value for one in call.keywords)]
        if all(reads(one, graph=False) <= known for one in others):
            start = where.span(call.args[0])[1]
            text = f"{where.segment(call.func)}({file.segment(loss)}{where.text[start : where.span(call)[1]]}"
            found[text] = function
    if len(found) != 1:
        return
    ((text, function),) = found.items()
    yield Proposal(
        edits=(edit_of(file, loss, text),),
        culprit=culprit_of(file, loss, f"is not reduced: elsewhere `{function.name}` makes one number of this loss"),
        belief=2.4,
        title=f"Reduce the loss as it is elsewhere, by `{function.name}`",
        because="so does the program with the same loss elsewhere: a plain mean would count what it leaves out",
    )


def reduced_as_sisters(loss: ast.expr, file: SourceFile, program: Program) -> Iterator[Proposal]:
    """An edit that gives a term and its mask to the function that reduces the other terms of the same function by masks of theirs.

    Only where all of these are unreduced calls, as the term is, and their masks come out of one batch, as its mask does.
    """
    for value, where in _products(loss, file, program):
        yield from _as_sisters(value, where, program)


def _products(loss: ast.expr, file: SourceFile, program: Program) -> Iterator[tuple[ast.expr, SourceFile]]:
    """A loss that is a product, and the products that a function of the program puts together for one."""
    yield loss, file
    for where, function in functions_called(loss, Value(loss, file), program) if isinstance(loss, ast.Call) else ():
        ends = [one for one in walk_scope(function) if isinstance(one, ast.Return) and one.value is not None]
        for end in ends:
            for one in walk(end):
                made = definitions(one.id, end, function) if isinstance(one, ast.Name) else []
                if len(made) == 1 and isinstance(made[0], ast.Assign):
                    yield made[0].value, where


def _as_sisters(loss: ast.expr, file: SourceFile, program: Program) -> Iterator[Proposal]:
    scope = scope_of(loss, file, program)
    if not isinstance(loss, ast.BinOp) or not isinstance(loss.op, ast.Mult) or scope is None:
        return
    parts = (loss.left, loss.right) if isinstance(loss.left, ast.Call) else (loss.right, loss.left)
    values, mask = parts
    source = ast.unparse(mask.value) if isinstance(mask, ast.Subscript) else None
    sisters = [
        (call, function)
        for where, call, function in _reducers(program)
        if where is file and scope_of(call, file, program) is scope and len(call.args) == 2 and not call.keywords
    ]
    alike = [
        call
        for call, _ in sisters
        if isinstance(call.args[1], ast.Subscript)
        and ast.unparse(call.args[1].value) == source
        and _is_unreduced(call.args[0])
    ]
    names = {dotted_name(call.func) for call, _ in sisters}
    if (
        not _is_unreduced(values)
        or not alike
        or len(alike) < len(sisters)
        or len(names) != 1
        or not _divides(sisters[0][1])
    ):
        return
    name = names.pop()
    text = f"{name}({file.segment(values)}, {file.segment(mask)})"
    yield Proposal(
        edits=(edit_of(file, loss, text),),
        culprit=culprit_of(file, loss, f"is not reduced: `{name}` makes one number of each of the other terms, by a mask of its own"),
        belief=2.4,
        title=f"Reduce the term as the others are, by `{name}`",
        because="so are the other terms of this loss: a plain mean would count what the mask leaves out",
    )  # fmt: skip


def _is_unreduced(node: ast.expr) -> bool:
    """`F.smooth_l1_loss(a, b, reduction="none")`."""
    keywords = node.keywords if isinstance(node, ast.Call) else []
    return any(one.arg == "reduction" and getattr(one.value, "value", None) == "none" for one in keywords)


def _divides(function: Function) -> bool:
    """Whether a function takes values and a mask, and divides a sum by another."""
    ends = [one.value for one in walk_scope(function) if isinstance(one, ast.Return)]
    return len(function.args.args) == 2 and all(
        isinstance(one, ast.BinOp)
        and isinstance(one.op, ast.Div)
        and all(any(map(_is_whole_sum, walk(side))) for side in (one.left, one.right))
        for one in ends
    )


def _reducers(program: Program) -> Iterator[tuple[SourceFile, ast.Call, Function]]:
    """The calls, by a plain name, of functions of the program that give one number, each with its file."""
    for file in program.parsed():
        for call in file.walk():
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args:
                target = resolver_of(program).function_of(call, Value(call, file))
                if target is not None and _reduces(target[1]):
                    yield file, call, target[1]


def _reduces(function: Function) -> bool:
    """Whether what a function returns ends in sums or means of all of its elements."""
    ends = [one.value for one in walk_scope(function) if isinstance(one, ast.Return) and one.value is not None]
    return bool(ends) and all(any(_is_whole_sum(one) for one in walk(end)) for end in ends)


def _is_whole_sum(node: ast.AST) -> bool:
    func = node.func if isinstance(node, ast.Call) and not node.args and not node.keywords else None
    return isinstance(func, ast.Attribute) and func.attr in ("sum", "mean")


def _first(call: ast.Call, file: SourceFile, program: Program) -> ast.expr | None:
    """What a call is given first, by its name or as it is."""
    first = call.args[0]
    name, scope = dotted_name(first), scope_of(call, file, program)
    made = definitions(name, file.statement(call), scope) if name and scope is not None else []
    return value_of(made[0], name) if len(made) == 1 and name else first


def _is_same(value: ast.expr | None, loss: ast.Call) -> bool:
    return isinstance(value, ast.Call) and value is not loss and ast.dump(value) == ast.dump(loss)


def _names_of(file: SourceFile, where: SourceFile) -> set[str]:
    """The names that a file has of what it imports, and of its own where the other file is the same."""
    imported = {
        alias.asname or alias.name for node in file.walk() if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    own = {one.name for one in (file.tree.body if file.tree is not None else ()) if isinstance(one, ast.FunctionDef)}
    return imported | (own if where is file else set())
