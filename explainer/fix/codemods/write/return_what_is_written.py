"""A function that writes its argument in place computes a new tensor and returns it, and its callers take it.

`def clip(t): t.clamp_(max=1.0)` becomes `t = t.clamp(max=1.0)` with `return t`, and `clip(h)` becomes `h = clip(h)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, insert_before
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.alias import is_aliased, is_for_others
from explainer.source.graph.write import AUGMENTED, METHOD, SUBSCRIPT, Write, find_writes
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bind_call
from explainer.source.value.resolve import resolver_of

_Call = tuple[SourceFile, ast.Call, ast.expr | None]
_ALIASED = "another name of a caller still means the tensor as it was before the call, and would keep the old value"
_SYMBOLS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each function that returns nothing and writes one argument, where all its calls are statements.

    With `at = "raise"` only for the write that raised.
    """
    if not context.has_failed:
        return
    program = context.program
    raised = [statement for _, statement in raised_at(context)] if context.options.get("at") == "raise" else None
    for write in find_writes(program):
        function = program.names(write.file).function_of(write.node)
        if (
            function is None
            or write.name is None
            or (raised is not None and write.file.statement(write.node) not in raised)
        ):
            continue
        calls = list(_calls(function, write.name, program))
        edits = _edits(write, function, calls, program)
        if edits:
            aliased = any(is_aliased(_as_write(*one), program) for one in calls)
            why = f"writes `{write.name}`, its caller's tensor, in place"
            yield Proposal(
                edits=edits,
                culprit=culprit_of(write.file, write.node, why),
                belief=0.8 if raised is None else 2.0,
                applicability="unsafe" if aliased else None,
                because=_ALIASED if aliased else None,
            )


def _edits(write: Write, function: Function, calls: Sequence[_Call], program: Program) -> tuple[Edit, ...]:
    names = {one.arg for one in function.args.args} - {"self", "cls"}
    returns = [one for one in walk(function) if isinstance(one, (ast.Return, ast.Yield))]
    is_alone = program.find_function(function.name) is not None and not function.name.startswith("__")
    if write.name not in names or returns or function.decorator_list or not is_alone or function.name == "forward":
        return ()
    own = _out_of_place(write, function)
    taken = [_taken(*one, program) for one in calls]
    if own is None or not taken or not all(taken):
        return ()
    back = insert_after(write.file, function.body[-1], f"return {write.name}")
    return (own, back, *(one for one in taken if one is not None))


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


def _calls(function: Function, name: str, program: Program) -> Iterator[_Call]:
    """Each call of the function, with what it is given for the parameter."""
    for file, node in resolver_of(program).calls_named(function.name):
        bound = bind_call(node, function, Value(node, file)).get(name)
        yield file, node, bound.node if bound is not None else None


def _as_write(file: SourceFile, node: ast.Call, value: ast.expr | None) -> Write:
    """The call as a write of the tensor that it is given."""
    return Write(kind=METHOD, file=file, node=node, target=value or node, name=dotted_name(value))


def _taken(file: SourceFile, node: ast.Call, value: ast.expr | None, program: Program) -> Edit | None:
    """A call as an assignment to the name that it is given; None where that would not reach all that hold the tensor."""
    name = dotted_name(value)
    if not isinstance(file.parents.get(node), ast.Expr) or name is None:
        return None
    if is_for_others(_as_write(file, node, value), program):
        return None
    start = file.span(node)[0]
    return Edit(file=file.path, start=start, end=start, new=f"{name} = ")
