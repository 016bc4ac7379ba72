"""`x += y` becomes `x = x + y`, and `x.relu_()` becomes `x = x.relu()`: the old tensor stays as autograd saved it.

Not where the write is meant for somebody else: a parameter of the function that it does not return, an element that a loop
hands out, a parameter or buffer of a module. Where another name still means the old tensor the edit is unsafe.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.suspicion import suspect
from explainer.model.patch import Edit
from explainer.source.alias import is_aliased, is_for_others
from explainer.source.file import SourceFile
from explainer.source.write import AUGMENTED, METHOD, Write, find_writes

_SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.MatMult: "@", ast.FloorDiv: "//", ast.Mod: "%",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip
# Methods that write all of their tensor: what stands for them out of place.
_WHOLE = {"zero_": "torch.zeros_like({x})", "copy_": "{args}.clone()", "fill_": "torch.full_like({x}, {args})"}
_ALIASED = "another name still means the tensor as it was before the write, and would keep the old value"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each suspicious augmented assignment or trailing-underscore method."""
    for write in find_writes(context.program):
        if write.kind not in (AUGMENTED, METHOD):
            continue
        belief = suspect(write, context)
        if belief is None or is_for_others(write, context.program):
            continue
        edits = _augmented(write) if write.kind == AUGMENTED else _method(write)
        if not edits:
            continue
        aliased = is_aliased(write, context.program)
        yield Proposal(
            edits=edits,
            culprit=culprit_of(write.file, write.node, _why(write)),
            belief=belief - (0.5 if aliased else 0.0),
            applicability="unsafe" if aliased else None,
            because=_ALIASED if aliased else None,
        )


def _why(write: Write) -> str:
    made = f", the result of {write.overwrites.name}," if write.overwrites else ""
    name = f"`{write.name}`" if write.name else "its input"
    return f"writes {name}{made} in place"


def _augmented(write: Write) -> tuple[Edit, ...]:
    node = write.node
    assert isinstance(node, ast.AugAssign)
    symbol = _SYMBOLS.get(type(node.op))
    if symbol is None or write.name is None:
        return ()
    target, value = write.file.segment(node.target), write.file.segment(node.value)
    if _binds_looser(node.value, node.op):
        value = f"({value})"
    return (edit_of(write.file, node, f"{target} = {target} {symbol} {value}"),)


def _binds_looser(value: ast.expr, operator: ast.operator) -> bool:
    """Whether `value` needs parentheses to the right of the operator."""
    if isinstance(value, ast.BinOp):
        return _rank(value.op) <= _rank(operator)
    return isinstance(value, (ast.IfExp, ast.Lambda, ast.BoolOp, ast.Compare, ast.Await, ast.NamedExpr, ast.Yield)) or (
        isinstance(value, ast.UnaryOp) and isinstance(operator, ast.Pow)
    )


def _rank(operator: ast.operator) -> int:
    if isinstance(operator, ast.Pow):
        return 6
    if isinstance(operator, (ast.Mult, ast.Div, ast.MatMult, ast.FloorDiv, ast.Mod)):
        return 5
    if isinstance(operator, (ast.Add, ast.Sub)):
        return 4
    return {ast.BitAnd: 2, ast.BitXor: 1, ast.BitOr: 0}.get(type(operator), 3)


def _method(write: Write) -> tuple[Edit, ...]:
    """`x.relu_()` as a statement is assigned; inside an expression on a value that has no name it only loses its underscore."""
    call = write.node
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Attribute)
    file, name = write.file, call.func.attr
    above = file.parents.get(call)
    is_statement = isinstance(above, ast.Expr)
    if write.name is None:
        if is_statement and _is_chained(call):
            return _chain(write, call)
        if is_statement or name in _WHOLE or _is_chained(call):
            return ()
        return (_without_underscore(write, call),)
    outer = _outermost(call, file)
    if outer is not call and isinstance(file.parents.get(outer), ast.Expr):
        return _chain(write, outer)
    if not is_statement:
        returned = isinstance(above, ast.Return) or (
            isinstance(above, ast.Assign) and file.segment(above.targets[0]) == write.name
        )
        return (_without_underscore(write, call),) if returned and name not in _WHOLE else ()
    target = file.segment(call.func.value)
    arguments = ", ".join(file.segment(one) for one in (*call.args, *call.keywords))
    if name in _WHOLE:
        return (
            (edit_of(file, call, f"{target} = {_WHOLE[name].format(x=target, args=arguments)}"),) if _fits(call) else ()
        )
    return (edit_of(file, call, f"{target} = {target}.{name[:-1]}({arguments})"),)


def _outermost(call: ast.Call, file: SourceFile) -> ast.Call:
    """The last call of a chain of methods that a call begins."""
    above = file.parents.get(call)
    while isinstance(above, ast.Attribute) and isinstance(outer := file.parents.get(above), ast.Call):
        call, above = outer, file.parents.get(outer)
    return call


def _chain(write: Write, call: ast.Call) -> tuple[Edit, ...]:
    """`x.mul_(a).add_(b)` as `x = x.mul(a).add(b)`, where no argument reads the tensor as the chain has changed it."""
    file = write.file
    links: list[ast.Attribute] = []
    node: ast.expr = call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _WHOLE or not node.func.attr.endswith("_"):
            return ()
        links.append(node.func)
        node = node.func.value
    if not isinstance(node, ast.Name) or sum(getattr(one, "id", "") == node.id for one in ast.walk(call)) != 1:
        return ()
    start, end = file.span(call)
    text = file.text[start:end]
    for one in links:
        at = file.span(one)[1] - start
        text = text[: at - 1] + text[at:]
    return (edit_of(file, call, f"{node.id} = {text}"),)


def _fits(call: ast.Call) -> bool:
    """Whether the arguments of a method that writes the whole tensor are those that its stand-in takes."""
    assert isinstance(call.func, ast.Attribute)
    wanted = 0 if call.func.attr == "zero_" else 1
    return (
        len(call.args) == wanted
        and not call.keywords
        and all(isinstance(one, (ast.Name, ast.Attribute, ast.Constant, ast.Call)) for one in call.args)
    )


def _is_chained(call: ast.Call) -> bool:
    """Whether the value under a chain of writes has a name after all: `x.mul_(a).add_(b)`."""
    value = call.func.value if isinstance(call.func, ast.Attribute) else None
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr.endswith("_")


def _without_underscore(write: Write, call: ast.Call) -> Edit:
    assert isinstance(call.func, ast.Attribute)
    end = write.file.span(call.func)[1]
    return Edit(file=write.file.path, start=end - 1, end=end, new="")
