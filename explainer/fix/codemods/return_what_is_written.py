"""A function that writes its argument in place computes a new tensor and returns it, and its callers take it.

`def clip(t): t.clamp_(max=1.0)` becomes `t = t.clamp(max=1.0)` with `return t`, and `clip(h)` becomes `h = clip(h)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, insert_before
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.write import AUGMENTED, METHOD, SUBSCRIPT, Write, find_writes

_SYMBOLS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each function that returns nothing and writes one argument, where all its calls are statements."""
    if not context.has_failed:
        return
    program = context.program
    for write in find_writes(program):
        function = program.names(write.file).function_of(write.node)
        if function is None or write.name is None or program.names(write.file).class_of(function) is not None:
            continue
        edits = _edits(write, function, program)
        if edits:
            why = f"writes `{write.name}`, its caller's tensor, in place"
            yield Proposal(edits=edits, culprit=culprit_of(write.file, write.node, why), belief=0.8)


def _edits(write: Write, function: Function, program: Program) -> tuple[Edit, ...]:
    names = [one.arg for one in function.args.args]
    returns = [one for one in ast.walk(function) if isinstance(one, (ast.Return, ast.Yield))]
    if write.name not in names or returns or function.decorator_list or write.name is None:
        return ()
    own = _out_of_place(write, function)
    calls = list(_calls(function, names.index(write.name), program))
    if own is None or not calls or any(one is None for one in calls):
        return ()
    back = insert_after(write.file, function.body[-1], f"return {write.name}")
    return (own, back, *(one for one in calls if one is not None))


def _out_of_place(write: Write, function: Function) -> Edit | None:
    """The write as an assignment; a part of the tensor is written into a clone."""
    file, node, statement = write.file, write.node, write.file.statement(write.node)
    if statement not in function.body:
        return None
    if write.kind == SUBSCRIPT:
        return insert_before(file, statement, f"{write.name} = {write.name}.clone()")
    if write.kind == AUGMENTED and isinstance(node, ast.AugAssign):
        symbol = _SYMBOLS.get(type(node.op))
        value = file.segment(node.value)
        text = f"({value})" if isinstance(node.value, (ast.BinOp, ast.IfExp)) else value
        return edit_of(file, node, f"{write.name} = {write.name} {symbol} {text}") if symbol else None
    if write.kind != METHOD or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    if (
        not isinstance(statement, ast.Expr)
        or statement.value is not node
        or node.func.attr in ("copy_", "zero_", "fill_")
    ):
        return None
    start, end = file.span(node)
    method = file.span(node.func)[1]
    return Edit(
        file=file.path,
        start=start,
        end=end,
        new=f"{write.name} = {file.text[start : method - 1]}{file.text[method:end]}",
    )


def _calls(function: Function, place: int, program: Program) -> Iterator[Edit | None]:
    """Each call as an assignment to the name that it is given; None for one that cannot be written so."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call) and (dotted_name(node.func) or "").rpartition(".")[2] == function.name:
                yield _assigned(node, function.args.args[place].arg, place, file)


def _assigned(node: ast.Call, name: str, place: int, file: SourceFile) -> Edit | None:
    given = next((one.value for one in node.keywords if one.arg == name), None)
    value = node.args[place] if given is None and len(node.args) > place else given
    if not isinstance(file.parents.get(node), ast.Expr) or not isinstance(value, ast.Name):
        return None
    start = file.span(node)[0]
    return Edit(file=file.path, start=start, end=start, new=f"{value.id} = ")
