"""How a program makes one number of a loss that has one value for each element: by the mean, or by the sum.

Weights that add up to 1 say it, and so does what the program does with the same loss elsewhere: an `evaluate` that sums it,
a report of its mean. A sum that is added up over batches, or divided later, says nothing, unless its elements are counted
beside it: that is a mean.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from explainer.source.file import SourceFile
from explainer.source.loss.loss import find_losses, loss_at
from explainer.source.loss.made import SAME, Made, made_of
from explainer.source.loss.weighting import DRAW, ONE, is_scalar
from explainer.source.name import bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.flow import arguments_of
from explainer.source.value.lineage import definitions, root_of, scope_of
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

MEAN, SUM = "mean", "sum"
_JOINS = ("torch.stack", "torch.cat", "torch.concat", "torch.hstack")
_OF_ONE_SIZE = frozenset({"squeeze", "flatten", "view", "reshape", "to", "float"})
_DEPTH = 5
_COUNTS = ("numel", "nelement")
_GROWS = frozenset({"append", "add", "extend", "update", "sum", "fsum"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How the loss is to be reduced, and what says so; `how` is None where weights multiply it and nothing says how."""

    how: str | None
    why: str = ""


def reduction_of(node: ast.expr, at: tuple[str | None, ast.stmt], file: SourceFile, program: Program) -> Told | None:
    """How a loss is to be reduced that has the value `node`, and a name at a statement; None where it is plain and nothing tells."""
    made = made_of(Value(node, file), program)
    votes = dict.fromkeys(_votes(made, program)) if made.calls else {}
    votes.update(dict.fromkeys(_own_votes(*at, file, program)))
    hows = {how for how, _ in votes}
    if None not in made.weights:
        hows |= {SUM if one == ONE else MEAN for one in made.weights}
    if len(hows) > 1 or (made.weights and not hows):
        return Told(how=None)
    if not hows:
        return None
    (how,) = hows
    told = next((why for each, why in votes if each == how), None)
    said = "the weights add up to 1" if how == SUM else "the mean of the weights is 1"
    if DRAW in made.weights:
        said = "the weights correct a draw by priority, whose mean then stands for that of an even one"
    return Told(how=how, why=told or said)


def adds_whole_sum(value: Value, program: Program, depth: int = 0) -> bool:
    """Whether a loss of elements has a whole sum added, with no weight: `nll + net.kl()`.

    How the elements are made one number then sets how much the other term weighs: `(nll + kl).mean()` is another objective than
    `nll.sum() + kl`.
    """
    node = value.node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [replace(value, node=one) for one in (node.left, node.right)]
        return sum(_is_whole_sum(one, program, 0) for one in sides) == 1 or any(
            adds_whole_sum(one, program, depth + 1) for one in sides
        )
    return depth < _DEPTH and any(adds_whole_sum(one, program, depth + 1) for one in _behind(value, program))


def is_of_weights(value: Value, program: Program, depth: int = 0) -> bool:
    """Whether a loss of elements is computed of parameters and numbers alone, as a penalty is: that is summed as often as averaged."""
    node, names = value.node, program.names(value.file)
    if isinstance(node, ast.BinOp):
        sides = [one for one in (node.left, node.right) if number_of(one, names) is None]
        return bool(sides) and all(is_of_weights(replace(value, node=one), program, depth) for one in sides)
    if isinstance(node, ast.UnaryOp):
        return is_of_weights(replace(value, node=node.operand), program, depth)
    if isinstance(node, ast.Call):
        if names.is_call(node, "torch.nn.Parameter", "torch.nn.parameter.Parameter"):
            return True
        is_method = (
            isinstance(node.func, ast.Attribute) and (names.qualified(node.func) or "").partition(".")[0] != "torch"
        )
        if (
            is_method
            and isinstance(node.func, ast.Attribute)
            and all(number_of(one, names) is not None for one in node.args)
        ):
            return is_of_weights(replace(value, node=node.func.value), program, depth)
    found = _behind(value, program) if depth < _DEPTH else []
    return bool(found) and all(is_of_weights(one, program, depth + 1) for one in found)


def is_of_terms(value: Value, program: Program, depth: int = 0) -> bool:
    """Whether a loss is several losses of their own side by side, `torch.stack([LOSSES[name](y, t) for name in heads])`.

    What they weigh their author says: their sum and their mean are another training each.
    """
    node, names = value.node, program.names(value.file)
    if names.is_call(node, *_JOINS) and isinstance(node, ast.Call) and node.args:
        terms = node.args[0]
        if isinstance(terms, (ast.List, ast.Tuple)):
            return (
                len({ast.unparse(one.func) if isinstance(one, ast.Call) else ast.unparse(one) for one in terms.elts})
                > 1
            )
        walked = {
            one.id
            for part in getattr(terms, "generators", ())
            for one in walk(part.target)
            if isinstance(one, ast.Name)
        }
        made = getattr(terms, "elt", None)
        return isinstance(made, ast.Call) and any(
            isinstance(one, ast.Name) and one.id in walked for one in walk(made.func)
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _OF_ONE_SIZE:
        return is_of_terms(replace(value, node=node.func.value), program, depth)
    found = _behind(value, program) if depth < _DEPTH else []
    return bool(found) and all(is_of_terms(one, program, depth + 1) for one in found)


def _is_whole_sum(value: Value, program: Program, depth: int) -> bool:
    node = value.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sum":
        return not node.args and not node.keywords
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)) and depth:  # the term's own formula
        sides = [one for one in (node.left, node.right) if number_of(one, program.names(value.file)) is None]
        return len(sides) == 1 and _is_whole_sum(replace(value, node=sides[0]), program, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return all(_is_whole_sum(replace(value, node=one), program, depth) for one in (node.left, node.right))
    found = _behind(value, program) if depth < _DEPTH else []
    return bool(found) and all(_is_whole_sum(one, program, depth + 1) for one in found)


def _behind(value: Value, program: Program) -> list[Value]:
    """What a name stands for, and what a function of the program returns."""
    resolver = resolver_of(program)
    target = resolver.function_of(value.node, value) if isinstance(value.node, ast.Call) else None
    if target is not None and isinstance(value.node, ast.Call):
        return resolver.returns_of(target, value.node, value)
    return [one for one in resolver.behind(value) if one.node is not value.node and one.pick is None]


def averaging_calls(name: str, scope: ast.AST, file: SourceFile, program: Program) -> Iterator[ast.Call]:
    """The calls of a function that hand a loss of elements to code that sums and counts them: `meter.add(loss.detach())`."""
    for one in walk(scope):
        is_read = isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load)
        node = one if is_read and isinstance(one, ast.expr) and dotted_name(one) == name else None
        while isinstance(above := file.parents.get(node) if node is not None else None, ast.Attribute):
            called = file.parents.get(above)
            node = called if isinstance(called, ast.Call) and called.func is above and above.attr in SAME else None
        if isinstance(above, ast.Call) and node is not None and _handed(node, above, file, program, 0) == MEAN:
            yield above


def _handed(node: ast.expr, call: ast.Call, file: SourceFile, program: Program, depth: int) -> str | None:
    """How a function of the program reduces the elements that a call hands it: by the mean where it sums and counts them."""
    target = resolver_of(program).function_of(call, Value(call, file)) if depth < 2 else None
    if target is None:
        return None
    where, function = target
    names = [parameter for parameter, value in arguments_of(call, function) if value is node]
    hows = {
        _upwards(one, where, program, wanted=False, weighted=False, depth=depth + 1)
        for one in walk(function)
        if isinstance(one, ast.Name) and one.id in names and isinstance(one.ctx, ast.Load)
    } - {None}
    return hows.pop() if len(hows) == 1 else None


def _is_counted(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether the function that sums a tensor reads how many elements it has: `count += values.numel()`."""
    name, scope = root_of(node), scope_of(file.statement(node), file, program)
    for one in walk(scope) if scope is not None and name is not None else ():
        if isinstance(one, ast.Attribute) and one.attr in _COUNTS and root_of(one.value) == name:
            return True
    return False


def _votes(made: Made, program: Program) -> list[tuple[str, str]]:
    """How the program reduces the same loss elsewhere, and where: of the outermost call of which it says so."""
    for value, weighted in made.calls:
        target = _identity(value, program)
        others = [
            (file, node)
            for file, node in program.once(_calls)
            if target is not None and node is not value.node and _identity(Value(node, file), program) == target
        ]
        found = [
            (how, f"`{_place(file, node)}` takes the {how} of it")
            for file, node in others
            if (how := _fate(node, file, program, weighted=weighted))
        ]
        if found:
            return found
    return []


def _own_votes(name: str | None, at: ast.stmt, file: SourceFile, program: Program) -> Iterator[tuple[str, str]]:
    """How the function that makes the loss reports it."""
    scope = scope_of(at, file, program) if name is not None else None
    if scope is None or name is None:
        return
    made = definitions(name, at, scope)
    for one in walk(scope):
        is_read = isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load)
        if is_read and isinstance(one, ast.expr) and dotted_name(one) == name:
            how = _upwards(one, file, program, wanted=False, weighted=False, depth=0)
            if how is not None and definitions(name, file.statement(one), scope) == made:
                yield how, f"`{_place(file, one)}` takes the {how} of it"


def _calls(program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    for file in program.parsed():
        yield from ((file, node) for node in file.walk() if isinstance(node, ast.Call))


def _identity(value: Value, program: Program) -> object:
    """What a call computes: the function of the program that it runs, or the loss of torch."""
    assert isinstance(value.node, ast.Call)
    losses = program.once(find_losses)
    loss = next((one for one in losses if one.call is value.node), None)
    if loss is not None:
        return loss.name
    function = resolver_of(program).function_of(value.node, value)
    if function is not None:
        return id(function[1])
    owners = resolver_of(program).classes_of(replace(value, node=value.node.func))
    return id(owners[0][1]) if owners else None


def _fate(call: ast.Call, file: SourceFile, program: Program, *, weighted: bool) -> str | None:
    """What becomes of a call's elements: `SUM` or `MEAN` where they are made one number, weighted or not as is asked."""
    loss = loss_at(call, file, program)
    if loss is not None and loss.reduction in (MEAN, SUM):
        is_meant = not weighted and _is_final(call, file, program, loss.reduction)
        return loss.reduction if is_meant else None
    return _upwards(call, file, program, wanted=weighted, weighted=False, depth=0)


def _upwards(
    node: ast.expr, file: SourceFile, program: Program, *, wanted: bool, weighted: bool, depth: int
) -> str | None:  # fmt: skip
    above = file.parents.get(node)
    if isinstance(above, (ast.BinOp, ast.UnaryOp)):
        heavy = weighted
        if isinstance(above, ast.BinOp) and isinstance(above.op, (ast.Mult, ast.Div)):
            other = above.left if above.right is node else above.right
            heavy = weighted or not is_scalar(Value(other, file), program)
        return _upwards(above, file, program, wanted=wanted, weighted=heavy, depth=depth)
    method = file.parents.get(above) if isinstance(above, ast.Attribute) else None
    if isinstance(above, ast.Attribute) and isinstance(method, ast.Call) and method.func is above:
        if above.attr in SAME and not _reduces(above.attr, method):
            return _upwards(method, file, program, wanted=wanted, weighted=weighted, depth=depth)
        return _of_method(node, method, above.attr, file, program) if weighted == wanted else None
    if isinstance(above, ast.Call) and above.func is not node:
        return _of_argument(node, above, file, program, depth) if weighted == wanted else None
    if isinstance(above, ast.Assign) and above.value is node and depth < 2 and isinstance(above.targets[0], ast.Name):
        hows = {
            _upwards(one, file, program, wanted=wanted, weighted=weighted, depth=depth + 1)
            for one in _uses(above, file, program)
        } - {None}
        return hows.pop() if len(hows) == 1 else None
    return None


def _reduces(method: str, call: ast.Call) -> bool:
    """Whether a method makes one number of all elements."""
    return method in (MEAN, SUM) and not call.args and not call.keywords


def _of_method(node: ast.expr, call: ast.Call, method: str, file: SourceFile, program: Program) -> str | None:
    """How `node.method()` reduces: a sum that is added up is a mean where the elements are counted beside it."""
    if not _reduces(method, call):
        return None
    if _is_final(call, file, program, method):
        return method
    return MEAN if _is_counted(node, file, program) else None


def _of_argument(node: ast.expr, call: ast.Call, file: SourceFile, program: Program, depth: int) -> str | None:
    """How a call reduces what it is given: torch's own, or a function of the program."""
    called = program.names(file).qualified(call.func)
    if called in (f"torch.{MEAN}", f"torch.{SUM}"):
        how = called.removeprefix("torch.")
        return how if call.args == [node] and not call.keywords and _is_final(call, file, program, how) else None
    return _handed(node, call, file, program, depth)


def _uses(statement: ast.Assign, file: SourceFile, program: Program) -> Iterator[ast.expr]:
    """Where the name that a statement binds is read later in its function."""
    name, scope = root_of(statement.targets[0]), scope_of(statement, file, program)
    for one in walk(scope) if scope is not None else ():
        if (
            isinstance(one, ast.Name)
            and one.id == name
            and isinstance(one.ctx, ast.Load)
            and one.lineno >= statement.lineno
        ):
            yield one


def _is_final(node: ast.expr, file: SourceFile, program: Program, how: str, depth: int = 0) -> bool:
    """Whether a sum is what the program looks at: not added up over batches, nor divided. A mean is always one."""
    if how == MEAN:
        return True
    below: ast.AST = node
    above = file.parents.get(node)
    while isinstance(
        above,
        (ast.Attribute, ast.Call, ast.BinOp, ast.UnaryOp, ast.Starred, ast.JoinedStr, ast.FormattedValue, ast.keyword),
    ):
        if isinstance(above, ast.BinOp) and isinstance(above.op, (ast.Div, ast.Add)):
            return False
        called = above.func if isinstance(above, ast.Call) else None
        if (getattr(called, "attr", "") or getattr(called, "id", "")) in _GROWS and below is not called:
            return False
        below, above = above, file.parents.get(above)
    if isinstance(above, (ast.AugAssign, ast.GeneratorExp, ast.ListComp, ast.Yield, ast.Tuple, ast.List, ast.Dict)):
        return False
    if depth > 2:
        return True
    if isinstance(above, ast.Assign):
        names = set(bound_names(above))
        return isinstance(above.targets[0], ast.Name) and all(
            _is_final(one, file, program, how, depth + 1) for one in _uses(above, file, program)
        ) and names <= {root_of(above.targets[0])}  # fmt: skip
    if isinstance(above, ast.Return):
        function = program.names(file).function_of(above)
        callers = resolver_of(program).calls_of(function, file) if function is not None else []
        return all(_is_final(call, where, program, how, depth + 1) for where, call in callers)
    return True


def _place(file: SourceFile, node: ast.AST) -> str:
    name = file.path.replace("\\", "/").rpartition("/")[2]
    return f"{name}:{getattr(node, 'lineno', 0)}"
