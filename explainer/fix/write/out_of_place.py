"""An in-place write as an assignment: `x += y` as `x = x + y`, `x.relu_()` as `x = x.relu()`."""

from __future__ import annotations

import ast

from explainer.fix.codemod import edit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.write import AUGMENTED, FUNCTION, METHOD, Write
from explainer.source.name import dotted_name
from explainer.source.tree import walk

_SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.MatMult: "@", ast.FloorDiv: "//", ast.Mod: "%",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip
# Methods that write all of their tensor: what stands for them out of place.
_WHOLE = {"zero_": "torch.zeros_like({x})", "copy_": "{args}.clone()", "fill_": "torch.full_like({x}, {args})"}
# Methods that have no form without the underscore: a copy is written.
_NO_PLAIN_FORM = frozenset(
    {"normal_", "uniform_", "random_", "exponential_", "geometric_", "cauchy_", "log_normal_", "fill_diagonal_"}
)
_NO_FUNCTION = frozenset({"zero_", "fill_", "resize_as_", "detach_"})


def out_of_place(write: Write) -> tuple[Edit, ...]:
    """The edit of an augmented assignment, or of a method or function with an underscore; none where it cannot be written so."""
    if write.kind == AUGMENTED:
        return _augmented(write)
    if write.kind == FUNCTION:
        return _function(write)
    return _method(write) if write.kind == METHOD else ()


def symbol_of(operator: ast.operator) -> str | None:
    """How an operator is written; None for those that tensors have no method for."""
    return _SYMBOLS.get(type(operator))


def value_alone(write: Write) -> tuple[Edit, ...]:
    """`x.mul_(a).exp_()` as `x.mul(a).exp()`, for a write that never came about; none where a method has no such form."""
    call = write.node
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Attribute)
    links = links_of(outermost(call, write.file))
    if len(links) > 1:
        return tuple(without_underscore(write.file, one) for one in links)
    is_plain = call.func.attr not in _WHOLE and call.func.attr not in _NO_PLAIN_FORM
    return (_without_underscore(write, call),) if is_plain else ()


def _augmented(write: Write) -> tuple[Edit, ...]:
    node = write.node
    assert isinstance(node, ast.AugAssign)
    symbol = _SYMBOLS.get(type(node.op))
    if symbol is None or not (write.name or isinstance(node.target, ast.Subscript)):
        return ()
    target, value = write.file.segment(node.target), write.file.segment(node.value)
    if _binds_looser(node.value, node.op):
        value = f"({value})"
    return (edit_of(write.file, node, f"{target} = {target} {symbol} {value}"),)


def assign_result(call: ast.Call, target: ast.expr, file: SourceFile) -> Edit | None:
    """The edit that gives a call's result to the tensor it was to write; None where that has no name."""
    name = dotted_name(target)
    start = file.span(call)[0]
    return Edit(file=file.path, start=start, end=start, new=f"{name} = ") if name else None


def _function(write: Write) -> tuple[Edit, ...]:
    """`F.relu_(x)` as `x = F.relu(x)`."""
    call = write.node
    assert isinstance(call, ast.Call)
    if write.name is None or not isinstance(call.func, ast.Attribute) or call.func.attr in _NO_FUNCTION:
        return ()
    plain = _without_underscore(write, call)
    if not isinstance(write.file.parents.get(call), ast.Expr):
        return (plain,) if _is_taken(write, call) else ()
    start = write.file.span(call)[0]
    return (Edit(file=write.file.path, start=start, end=start, new=f"{write.name} = "), plain)


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
        if is_statement and _is_entry(call.func.value) and name not in _WHOLE:
            return _assigned(write, call)
        goes_nowhere = isinstance(file.parents.get(outermost(call, file)), ast.Expr)
        if goes_nowhere or name in _WHOLE or _is_chained(call):
            return ()
        return (_without_underscore(write, call),)
    outer = outermost(call, file)
    if outer is not call and isinstance(file.parents.get(outer), ast.Expr):
        return _chain(write, outer)
    if not is_statement:
        return _in_expression(write, call, outer)
    target = file.segment(call.func.value)
    arguments = ", ".join(file.segment(one) for one in (*call.args, *call.keywords))
    if name in _WHOLE:
        return (
            (edit_of(file, call, f"{target} = {_WHOLE[name].format(x=target, args=arguments)}"),) if _fits(call) else ()
        )
    return _assigned(write, call)


def _in_expression(write: Write, call: ast.Call, outer: ast.Call) -> tuple[Edit, ...]:
    """`return x.relu_()`, `return x.mul_(a).add_(b)`: without underscores, where all read the tensor through the value."""
    links = links_of(outer) if outer is not call else []
    if links and _is_taken(write, outer):
        return tuple(without_underscore(write.file, one) for one in links)
    name = call.func.attr  # type: ignore[attr-defined]
    is_plain = name not in _WHOLE and name not in _NO_PLAIN_FORM
    return (_without_underscore(write, call),) if is_plain and _is_taken(write, call) else ()


def _assigned(write: Write, call: ast.Call) -> tuple[Edit, ...]:
    assert isinstance(call.func, ast.Attribute)
    file, name = write.file, call.func.attr
    target = file.segment(call.func.value)
    arguments = ", ".join(file.segment(one) for one in (*call.args, *call.keywords))
    plain = f"clone().{name}" if name in _NO_PLAIN_FORM else name[:-1]
    return (edit_of(file, call, f"{target} = {target}.{plain}({arguments})"),)


def _is_entry(node: ast.expr) -> bool:
    """`outputs["h"]`: an entry of a dictionary, which all that hold the dictionary read anew."""
    key = node.slice if isinstance(node, ast.Subscript) else None
    return isinstance(key, ast.Constant) and isinstance(key.value, str)


def _is_taken(write: Write, call: ast.Call) -> bool:
    """Whether all that reads the tensor from here on reads it through the value of the call: `return x.relu_()`, `x = x.relu_()`."""
    file = write.file
    if isinstance(file.parents.get(call), ast.Return):
        return True
    statement = file.statement(call)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)
        pairs = zip(target.elts, value.elts, strict=True) if both else [(target, value)]  # type: ignore[attr-defined]
        if any(one is call and dotted_name(name) == write.name for name, one in pairs):
            return True
        if write.name and dotted_name(target) == write.name and _mentions(statement.value, write.name) == 1:
            return True  # `x = x.mul_(0.9).add(y)`
    return isinstance(write.target, ast.Name) and _is_last_use(write, call)


def _mentions(value: ast.expr, name: str) -> int:
    return sum(dotted_name(one) == name for one in walk(value) if isinstance(one, (ast.Name, ast.Attribute)))


def _is_last_use(write: Write, call: ast.Call) -> bool:
    """Whether the function reads its variable nowhere behind the call, nor, in a loop, before it in the next round."""
    file, name = write.file, write.name
    function = file.enclosing(call, ast.FunctionDef, ast.AsyncFunctionDef)
    if function is None or file.enclosing(call, ast.Lambda) is not None:
        return False
    uses = [one for one in walk(function) if isinstance(one, ast.Name) and one.id == name]
    written = file.span(call)
    reads = [file.span(one)[0] for one in uses if isinstance(one.ctx, ast.Load)]
    if any(one >= written[1] for one in reads):
        return False
    inside = [one for one in reads if file.span(file.statement(call))[0] <= one < written[1]]
    loop = file.enclosing(call, ast.For, ast.While, ast.AsyncFor, ast.FunctionDef)
    bound = [one for one in uses if isinstance(one.ctx, ast.Store) and file.span(one)[0] < written[0]]
    is_anew = not isinstance(loop, (ast.For, ast.While, ast.AsyncFor)) or any(
        file.span(loop)[0] < file.span(one)[0] for one in bound
    )
    return len(inside) == 1 and bool(bound) and is_anew


def outermost(call: ast.Call, file: SourceFile) -> ast.Call:
    """The last call of a chain of methods that a call begins."""
    above = file.parents.get(call)
    while isinstance(above, ast.Attribute) and isinstance(outer := file.parents.get(above), ast.Call):
        call, above = outer, file.parents.get(outer)
    return call


def links_of(call: ast.Call) -> list[ast.Attribute]:
    """The methods of a chain that writes throughout, where no argument reads the tensor as the chain has changed it; else none."""
    links: list[ast.Attribute] = []
    node: ast.expr = call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _WHOLE or not node.func.attr.endswith("_"):
            return []
        links.append(node.func)
        node = node.func.value
    name = dotted_name(node)
    return links if name is not None and _mentions(call, name) == 1 else []


def _chain(write: Write, call: ast.Call) -> tuple[Edit, ...]:
    """`x.mul_(a).add_(b)` as `x = x.mul(a).add(b)`."""
    file, links = write.file, links_of(call)
    if not links:
        return ()
    start, end = file.span(call)
    text = file.text[start:end]
    for one in links:
        at = file.span(one)[1] - start
        text = text[: at - 1] + text[at:]
    return (edit_of(file, call, f"{file.segment(links[-1].value)} = {text}"),)


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
    return without_underscore(write.file, call.func)


def without_underscore(file: SourceFile, method: ast.expr) -> Edit:
    """The edit that takes the underscore off a method's name."""
    end = file.span(method)[1]
    return Edit(file=file.path, start=end - 1, end=end, new="")
