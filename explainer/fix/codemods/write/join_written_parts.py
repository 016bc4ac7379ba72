"""`h = torch.cat([part - part.mean(0) for part in h.split(sizes)])` for a loop that writes into the parts of a tensor.

`split`, `chunk` and `unbind` make all their views in one call, and autograd lets none of them be written; a new name in the loop
would leave the tensor as it was. Only where the loop does nothing else, and the tensor is read behind it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand, spell
from explainer.fix.write.out_of_place import symbol_of
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.tree import walk
from explainer.source.value.lineage import scope_of

_REFUSED = "is the output of a function that returns multiple views"
_PARTS = frozenset({"split", "chunk", "tensor_split"})
_METHODS = {"add_": "+", "sub_": "-", "mul_": "*", "div_": "/"}


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the loop whose one statement raised."""
    if not context.has_failed or _REFUSED not in message_of(context):
        return
    for file, statement in list(raised_at(context))[:1]:
        loop, scope = file.parents.get(statement), scope_of(statement, file, context.program)
        if not isinstance(loop, ast.For) or loop.body != [statement] or loop.orelse or scope is None:
            continue
        names = context.program.names(file)
        value = _written(statement, file)
        cut = _cut(loop, value[0], names) if value is not None else None
        if value is None or cut is None:
            continue
        base, joins, dim = cut
        is_read = any(
            isinstance(one, ast.Name) and one.id == base and one.lineno > (loop.end_lineno or 0) for one in walk(scope)
        )
        is_of_whole = any(isinstance(one, ast.Name) and one.id == base for one in walk(statement))
        if not is_read or is_of_whole:
            continue
        each = f"{value[1]} for {file.segment(loop.target)} in {file.segment(loop.iter)}"
        at = f", {file.segment(dim)}" if dim is not None else ""
        yield Proposal(
            edits=(edit_of(file, loop, f"{base} = {spell(names, joins)}([{each}]{at})"),),
            culprit=culprit_of(file, statement, f"writes into the parts of `{base}`, which one call has made"),
            belief=3.0,
        )
        return


def _written(statement: ast.stmt, file: SourceFile) -> tuple[str, str] | None:
    """The part that a statement writes, and its new value: `part`, `part - part.mean(0)`."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        symbol = symbol_of(statement.op)
        name, given = statement.target.id, statement.value
    else:
        call = statement.value if isinstance(statement, ast.Expr) else None
        func = call.func if isinstance(call, ast.Call) and len(call.args) == 1 and not call.keywords else None
        owner = func.value if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) else None
        if not isinstance(call, ast.Call) or owner is None:
            return None
        symbol, name, given = _METHODS.get(func.attr), owner.id, call.args[0]  # type: ignore[union-attr]
    return (name, f"{name} {symbol} {operand(file, given)}") if symbol is not None else None


def _cut(loop: ast.For, part: str, names: Names) -> tuple[str, str, ast.expr | None] | None:
    """The tensor that a loop takes the parts of, by its name, what joins them again, and along which axis."""
    source: ast.expr = loop.iter
    if isinstance(loop.target, ast.Tuple):  # `for part, scale in zip(x.chunk(4), scales)`
        places = [at for at, one in enumerate(loop.target.elts) if dotted_name(one) == part]
        is_zip = isinstance(source, ast.Call) and dotted_name(source.func) == "zip" and not source.keywords
        if len(places) != 1 or not isinstance(source, ast.Call) or not is_zip or len(source.args) <= places[0]:
            return None
        source = source.args[places[0]]
    elif dotted_name(loop.target) != part:
        return None
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Attribute):
        return None
    is_function = (names.qualified(source.func) or "").startswith("torch.")
    base = source.args[0] if is_function and source.args else source.func.value
    given = source.args[1:] if is_function else source.args
    named = next((one.value for one in source.keywords if one.arg == "dim"), None)
    if source.func.attr == "unbind":
        return (base.id, "torch.stack", named or next(iter(given), None)) if isinstance(base, ast.Name) else None
    if source.func.attr not in _PARTS or not isinstance(base, ast.Name):
        return None
    return base.id, "torch.cat", named or (given[1] if len(given) > 1 else None)
