"""A loss with one value a sample becomes one number, where it is made: `loss = criterion(...).mean()`.

Of a sum it is the term that has the values, where the live program or the term's own criterion shows which that is.

The mean, unless the program says otherwise: by weights that add up to 1, or by what it does with the same loss elsewhere.
Where weights or masks multiply the loss and nothing says by what to divide, a whole sum is added to its elements (a
Kullback-Leibler term), or they are losses of their own side by side, only the line is named.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.crash import crash_places
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.fix.data.idle_mask import idle_mask
from explainer.fix.loss.reduction_by_helper import reduced_as_sisters, reduced_by_helper
from explainer.fix.loss.reduction_of_base import reduced_by_base
from explainer.fix.loss.reduction_of_branch import is_reduced_throughout, reduced_by_others
from explainer.fix.loss.reduction_of_word import reduced_by_word
from explainer.fix.text.rewrite import operand
from explainer.model.finding import Culprit
from explainer.source.file import SourceFile
from explainer.source.loop.backward import find_backwards
from explainer.source.loss.reduction import (
    SUM,
    adds_whole_sum,
    averaging_calls,
    is_of_terms,
    is_of_weights,
    reduction_of,
)
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import before, definitions, reads, scope_of, statements_of, value_of
from explainer.source.value.resolve import resolver_of

_STEPS = ("compute_loss", "training_step")
# With these the criterion's mean divides by the weights, or by the labels that count.
_OWN_MEAN = ("weight", "ignore_index")
_REDUCED = ("mean", "sum", "item", "logsumexp")
_SUM = "`sum()` makes the step grow with the number of elements; right where the learning rate was chosen for it"


@dataclass(frozen=True, slots=True)
class _Loss:
    """The value that is differentiated, the line that is guilty of it, and the name that it has at the backward.

    `total` is the sum of which it is a term, where it is one.
    """

    file: SourceFile
    node: ast.expr
    guilty: ast.AST
    at: ast.stmt
    name: str | None = None
    total: ast.expr | None = None


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the loss whose backward raised, and for the criteria that were told not to reduce."""
    if not context.has_failed:
        return
    for loss in _losses(context):
        file, node = loss.file, loss.node
        if _is_reduced(node) or is_reduced_throughout(node, file, context.program):
            continue
        own = [
            *reduced_by_helper(node, file, context.program),
            *reduced_as_sisters(node, file, context.program),
            *reduced_by_others(node, file, context.program),
            *reduced_by_word(node, file, context.program),
        ]
        if own:
            yield from own
            continue
        culprit = culprit_of(
            file, loss.guilty, f"is not reduced: `{_short(file, node)}` has one value for each element"
        )
        whole = operand(file, node)
        mask = idle_mask(node, file, context)
        if mask is not None:  # a plain mean would train on the padding
            yield from _over(mask, loss, culprit)
            continue
        told = reduction_of(node, (loss.name, loss.at), file, context.program)
        whole_loss = Value(loss.total or node, file)
        is_open = told is None and (
            adds_whole_sum(whole_loss, context.program)
            or is_of_weights(whole_loss, context.program)
            or is_of_terms(whole_loss, context.program)
        )
        if is_open or (told is not None and told.how is None):
            own = list(_by_own_mean(node, file, context.program)) if told is not None else []
            yield from own or [Proposal(edits=(), culprit=culprit, belief=1.5)]
            continue
        if told is not None:
            yield Proposal(
                edits=(edit_of(file, node, f"{whole}.{told.how}()"),),
                culprit=culprit,
                belief=1.8,
                because=told.why,
                title=f"Reduce the loss before backward: `.{told.how}()`",
            )
        if told is None or told.how != SUM:
            yield from _means(loss, culprit, context)
        if told is None:
            yield Proposal(
                edits=(edit_of(file, node, f"{whole}.sum()"),),
                culprit=culprit,
                belief=0.2,
                applicability="unsafe",
                because=_SUM,
            )


def _over(mask: str, loss: _Loss, culprit: Culprit) -> Iterator[Proposal]:
    """The mean over the elements that count."""
    total = f"{mask}.sum()" if not mask.startswith("~") else f"({mask}).sum()"
    text = f"({loss.file.segment(loss.node)} * {mask}).sum() / {total}"
    yield Proposal(
        edits=(edit_of(loss.file, loss.node, text),) if mask else (),
        culprit=culprit,
        belief=2.0,
        because="the batch comes with a mask of what counts, and nothing else reads it: a plain mean would train on the padding",
        title="Average over what counts: `(losses * mask).sum() / mask.sum()`",
    )


def _means(loss: _Loss, culprit: Culprit, context: Context) -> Iterator[Proposal]:
    file, node = loss.file, loss.node
    yield from reduced_by_base(context)
    is_one = _is_handed_in(loss, context.program)
    mean = insert_before(file, loss.at, f"{loss.name} = {loss.name}.mean()") if is_one else None
    yield Proposal(edits=(mean or edit_of(file, node, f"{operand(file, node)}.mean()"),), culprit=culprit, belief=1.5)
    for criterion_file, keyword in _unreduced(node, file, context.program):
        call = criterion_file.parents.get(keyword)
        has_own_mean = isinstance(call, ast.Call) and any(one.arg in _OWN_MEAN for one in call.keywords)
        yield Proposal(
            edits=(edit_of(criterion_file, keyword.value, '"mean"'),),
            culprit=culprit_of(criterion_file, keyword, "asks for one value for each element"),
            belief=1.6 if has_own_mean else 1.2,
        )


def _is_handed_in(loss: _Loss, program: Program) -> bool:
    """Whether a function is given the loss that it differentiates, and afterwards takes it for one number, or gives it back."""
    function = program.names(loss.file).function_of(loss.at)
    scope = scope_of(loss.at, loss.file, program)
    is_given = function is not None and loss.name in {
        one.arg for one in (*function.args.args, *function.args.kwonlyargs)
    }
    if not is_given or loss.name is None or scope is None or dotted_name(loss.node) != loss.name:
        return False
    later = [one for one in _uses(loss.name, scope) if one.lineno > (loss.at.end_lineno or loss.at.lineno)]
    if not later or function is None or not all(_takes_number(one, loss.file) for one in later):
        return False
    is_returned = any(isinstance(loss.file.statement(one), ast.Return) for one in later)
    calls = resolver_of(program).calls_of(function, loss.file) if is_returned else []
    return all(_is_number_for(call, file, program) for file, call in calls)


def _is_number_for(call: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether the caller of a function takes what it gets for one number, or does nothing with it."""
    at, scope = file.statement(call), scope_of(call, file, program)
    name = dotted_name(at.targets[0]) if isinstance(at, ast.Assign) and at.value is call else None
    if name is None or scope is None:
        return isinstance(at, ast.Expr) or _takes_number(call, file)
    return all(_takes_number(one, file) for one in _uses(name, scope) if one.lineno > at.lineno)


def _by_own_mean(node: ast.expr, file: SourceFile, program: Program) -> Iterator[Proposal]:
    """The mean of a criterion that has class weights of its own, by which it divides; nothing else weighs its elements."""
    for where, keyword in _unreduced(node, file, program):
        call = where.parents.get(keyword)
        if isinstance(call, ast.Call) and any(one.arg == "weight" for one in call.keywords):
            yield Proposal(
                edits=(edit_of(where, keyword.value, '"mean"'),),
                culprit=culprit_of(where, keyword, "asks for one value for each element"),
                belief=1.5,
                applicability="unsafe",
                because="the criterion's own mean divides by the weights of the labels that it got, as it does unless it is told otherwise",
            )


def _losses(context: Context) -> Iterator[_Loss]:
    """The expressions whose value is differentiated where the failure stands: where the loss is made, if that is one place."""
    backwards = list(find_backwards(context.program))
    for file, statement in crash_places(context):
        for one in backwards:
            if one.file is file and one.statement is statement:
                made = _made(one.loss, one.call, one.statement, file, context.program)
                yield _term(made, context) or made
                return
        read = _read_as_number(file, statement, context.program)
        if read is not None:
            made = _made(read, statement, statement, file, context.program)
            yield _term(made, context) or made
            return
        function = _differentiated(file, statement, context.program, set())
        found = list(_handed_to_trainer(file, context.program)) if function is None else []
        found = found or (list(_of_models(context.program)) if function is None else [])
        if len(found) == 1:
            yield _term(found[0], context) or found[0]
            return
        for node in walk(function[1]) if function else ():
            if isinstance(node, ast.Return) and node.value is not None and function:
                yield _Loss(function[0], node.value, node, node)
                return


def _made(loss: ast.expr, guilty: ast.AST, at: ast.stmt, file: SourceFile, program: Program) -> _Loss:
    """The value that the loss was last bound to, where nothing else reads it sample by sample; else the loss itself."""
    name, scope = dotted_name(loss), scope_of(guilty, file, program)
    made = definitions(name, at, scope) if name and scope is not None else []
    if len(made) != 1 or not isinstance(made[0], ast.Assign) or len(made[0].targets) != 1:
        return _Loss(file, loss, guilty, at, name)
    value = made[0].value
    if dotted_name(made[0].targets[0]) != name or isinstance(value, ast.Name):
        return _Loss(file, loss, guilty, at, name)
    readers = [
        each
        for each in (statements_of(scope) if scope is not None else ())
        if before(made[0], each) and before(each, at) and name in reads(value_of(each), graph=False)
        and not all(_is_number_of(one, file) for one in _uses(name or "", each))
    ]  # fmt: skip
    if readers or (name and scope is not None and any(averaging_calls(name, scope, file, program))):
        return _Loss(file, loss, guilty, at, name)
    return _Loss(file, value, made[0], at, name)


def _read_as_number(file: SourceFile, statement: ast.stmt, program: Program) -> ast.expr | None:
    """The loss that a statement makes a number of, `loss.item()`, where the same function differentiates or returns it."""
    scope = scope_of(statement, file, program)
    function = program.names(file).function_of(statement)
    is_step = function is not None and function.name in _STEPS
    for node in walk(statement) if scope is not None else ():
        if not isinstance(node, ast.Call):
            continue
        is_item = isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args
        read = node.func.value if is_item and isinstance(node.func, ast.Attribute) else None
        if isinstance(node.func, ast.Name) and node.func.id == "float" and len(node.args) == 1:
            read = node.args[0]
        name = dotted_name(read) if read is not None else None
        if name is not None and scope is not None:
            ends = [one.value for one in walk(scope) if isinstance(one, ast.Return)] if is_step else []
            ends += [one.loss for one in find_backwards(program) if scope_of(one.call, one.file, program) is scope]
            if any(name in {dotted_name(part) for part in walk(end)} for end in ends if end is not None):
                return read
    return None


def _handed_to_trainer(file: SourceFile, program: Program) -> Iterator[_Loss]:
    """What a trainer's own `compute_loss`, or a `training_step`, returns: the loss, alone or before the outputs."""
    for where, function in program.functions():
        if where is not file or function.name not in _STEPS or program.names(file).class_of(function) is None:
            continue
        for node in walk(function):
            value = node.value if isinstance(node, ast.Return) else None
            if isinstance(node, ast.Return) and value is not None and not _is_inherited(function, value):
                value = value.orelse if isinstance(value, ast.IfExp) else value
                value = value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value
                yield _made(value, node, node, file, program)


def _of_models(program: Program) -> Iterator[_Loss]:
    """What a model's own forward gives a trainer for its loss: `{"loss": loss}`, `Output(loss=loss)`."""
    for file, function in program.functions():
        if function.name != "forward":
            continue
        for node in walk(function):
            value = node.value if isinstance(node, ast.Return) else None
            given: list[ast.expr] = []
            if isinstance(value, ast.Dict):
                pairs = zip(value.keys, value.values, strict=True)
                given = [one for key, one in pairs if isinstance(key, ast.Constant) and key.value == "loss"]
            elif isinstance(value, ast.Call):
                given = [one.value for one in value.keywords if one.arg == "loss"]
            for loss in given:
                yield _made(loss, node, file.statement(node), file, program)


def _is_inherited(function: Function, value: ast.expr) -> bool:
    """Whether a method returns what the class above it made: `loss = super().training_step(...)`."""
    return any(isinstance(one, ast.Name) and one.id == "super" for one in walk(function)) or isinstance(value, ast.Dict)


def _term(loss: _Loss, context: Context) -> _Loss | None:
    """The one term of a sum that has several values, where nothing but the sum and reports read it."""
    file, scope = loss.file, scope_of(loss.guilty, loss.file, context.program)
    statement = file.statement(loss.node)
    terms = list(_terms(loss.node))
    if scope is None or len(terms) < 2:
        return None
    found: list[_Loss] = []
    for one in terms:
        name = dotted_name(one)
        made = definitions(name, statement, scope) if name else []
        if name is None or len(made) != 1 or not isinstance(made[0], ast.Assign) or isinstance(made[0].value, ast.Name):
            continue
        if dotted_name(made[0].targets[0]) == name and _has_several(one, made[0].value, file, context):
            is_free = all(_takes_number(each, file) for each in _uses(name, scope))
            found += [_Loss(file, made[0].value, made[0], loss.at, name, loss.node)] if is_free else [loss]
    return found[0] if len(found) == 1 and found[0] is not loss else None


def _terms(node: ast.expr) -> Iterator[ast.expr]:
    """The terms of a sum, without the numbers that multiply them."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield from (*_terms(node.left), *_terms(node.right))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield node.right if isinstance(node.left, ast.Constant) or dotted_name(node.right) else node.left
    else:
        yield node


def _has_several(name: ast.expr, value: ast.expr, file: SourceFile, context: Context) -> bool:
    """Whether a name holds several values: as the live program had it, else by what its criterion is told."""
    tensor = seen(name, context)
    if tensor is not None:
        return math.prod(tensor.shape) > 1
    return any(True for _ in _unreduced(value, file, context.program))


def _uses(name: str, scope: ast.AST) -> Iterator[ast.expr]:
    yield from (
        one
        for one in walk(scope)
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load) and dotted_name(one) == name
    )


def _is_number_of(node: ast.expr, file: SourceFile) -> bool:
    """Whether a value is read to make a number of it, which several values are none: `loss.item()`."""
    above = file.parents.get(node)
    return isinstance(above, ast.Attribute) and above.attr == "item"


def _takes_number(node: ast.expr, file: SourceFile) -> bool:
    """Whether what reads a tensor can do with one number: no item of it is taken, and no function gets it."""
    above = file.parents.get(node)
    if isinstance(above, ast.Call):
        return dotted_name(above.func) in ("float", "print") or getattr(above.func, "attr", "") == "append"
    if isinstance(above, ast.Attribute):
        return above.attr not in ("shape", "size", "numel", "topk", "sort", "max", "min")
    return not isinstance(above, (ast.Subscript, ast.For, ast.comprehension))


def _differentiated(
    file: SourceFile, statement: ast.stmt, program: Program, seen_here: set[ast.AST]
) -> tuple[SourceFile, Function] | None:
    """The function that a statement gives to `torch.func.grad`, itself or by a name."""
    seen_here.add(statement)
    for node in walk(statement):
        called = program.names(file).qualified(node.func) if isinstance(node, ast.Call) else None
        if (
            isinstance(node, ast.Call)
            and node.args
            and called in ("torch.func.grad", "torch.func.grad_and_value", "functorch.grad")
        ):
            return program.find_function(dotted_name(node.args[0]) or "")
    names = {node.id for node in walk(statement) if isinstance(node, ast.Name)}
    for one in file.walk():
        is_bound = isinstance(one, ast.Assign) and getattr(one.targets[0], "id", "") in names
        if isinstance(one, ast.Assign) and is_bound and one not in seen_here:
            found = _differentiated(file, one, program, seen_here)
            if found:
                return found
    return None


def _is_reduced(node: ast.expr) -> bool:
    method = getattr(node.func, "attr", "") if isinstance(node, ast.Call) else ""
    if not isinstance(node, ast.Call) or method not in _REDUCED or any(one.arg == "dim" for one in node.keywords):
        return False
    is_partial = method in ("mean", "sum") and bool(node.args) and not _is_torch(node.func)
    return not is_partial


def _is_torch(func: ast.expr) -> bool:
    return isinstance(func, ast.Attribute) and dotted_name(func.value) == "torch"


def _unreduced(node: ast.expr, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, ast.keyword]]:
    """`reduction="none"` in the call that made the loss, or in the constructor of its criterion."""
    if not isinstance(node, ast.Call):
        return
    yield from ((file, one) for one in node.keywords if _is_none(one))
    name = dotted_name(node.func)
    for where in program.parsed():
        for one in where.walk():
            if (
                isinstance(one, ast.Assign)
                and name in {dotted_name(target) for target in one.targets}
                and isinstance(one.value, ast.Call)
            ):
                yield from ((where, each) for each in one.value.keywords if _is_none(each))


def _is_none(keyword: ast.keyword) -> bool:
    return keyword.arg == "reduction" and isinstance(keyword.value, ast.Constant) and keyword.value.value == "none"


def _short(file: SourceFile, node: ast.expr) -> str:
    text = " ".join(file.segment(node).split())
    return text if len(text) <= 40 else f"{text[:37]}..."
