"""A Function's gradient gets the shape of its input: summed over the axes along which the input was repeated, or transposed.

By the two shapes of the message, where they leave one way: `[16, 96]` for an input of `[16]` is summed over its second axis.
A Function that takes weights of any rank sums over all axes behind the first, and not over that. Autograd itself sums what broadcasting from the right has repeated.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand, put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.tree import walk
from explainer.source.value.binding import bounds_of, calls_behind, parameters_of
from explainer.source.value.lineage import statements_of

_NUMBER = re.compile(r"\d+")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit of what the named Function's `backward` returns at the named index."""
    node, index = str(context.fields.get("node") or ""), context.fields.get("index")
    got, wanted = (_shape(context, name) for name in ("got_shape", "expected_shape"))
    if not context.has_failed or index is None or not node.endswith("Backward") or got is None or wanted is None:
        return
    owner = node.removesuffix("Backward")
    for file, function in context.program.functions():
        found = context.program.names(file).class_of(function)
        if found is None or found.name != owner or function.name != "backward":
            continue
        for value in _returned(function, int(str(index))):
            edit = _edit(file, value, got, wanted, _axis(found, int(str(index)), len(got)))
            if edit is None and len(got) == len(wanted) == 1 and _is_of_any_rank(found):
                edit = _within_rows(file, value, function)
            if wanted == got[:1] and len(got) > 1 and _is_of_any_rank(found):
                edit = put_method(file, value, ".flatten(1).sum(dim=1)")
            if edit is not None:
                why = f"gives a gradient of {list(got)} for an input of {list(wanted)}"
                yield Proposal(edits=(edit,), culprit=culprit_of(file, _maker(value, function), why), belief=2.0)


def _maker(value: ast.expr, backward: Function) -> ast.AST:
    """The one statement that computes what is returned by a name; the value itself where none does."""
    made = [one for one in bounds_of(backward) if isinstance(value, ast.Name) and one.name == value.id]
    return made[0].statement if len(made) == 1 and isinstance(made[0].statement, ast.Assign) else value


def _within_rows(file: SourceFile, value: ast.expr, backward: Function) -> Edit | None:
    """The one sum over the rows themselves that a returned value is made by, taken within each of them: `.sum(0)`."""
    sums = [
        one
        for one in calls_behind(value, file)
        if _summed(one, 1) == [0] and backward.lineno <= one.lineno <= (backward.end_lineno or 0)
    ]
    if len(sums) != 1 or not isinstance(sums[0].func, ast.Attribute):
        return None
    return edit_of(file, sums[0], f"{operand(file, sums[0].func.value)}.flatten(1).sum(dim=1)")


def _is_of_any_rank(owner: ast.ClassDef) -> bool:
    """Whether a Function brings its input to the rank of another: `step.view(-1, *[1] * (weight.dim() - 1))`."""
    forward = next((one for one in owner.body if getattr(one, "name", "") == "forward"), None)
    shapings = [one for one in walk(forward) if isinstance(one, ast.Call)] if forward is not None else []
    return any(
        isinstance(one.func, ast.Attribute) and one.func.attr in ("view", "reshape") and _is_open(one)
        for one in shapings
    )


def _is_open(call: ast.Call) -> bool:
    """Whether a call's arguments are as many as a list has that is computed."""
    return any(isinstance(one, (ast.Starred, ast.BinOp)) for one in call.args)


def _shape(context: Context, name: str) -> tuple[int, ...] | None:
    text = context.fields.get(name)
    return tuple(int(one) for one in _NUMBER.findall(str(text))) if text is not None else None


def _returned(backward: ast.FunctionDef | ast.AsyncFunctionDef, index: int) -> Iterator[ast.expr]:
    """What each `return` gives for one input."""
    for one in statements_of(backward):
        value = one.value if isinstance(one, ast.Return) else None
        if isinstance(value, ast.Tuple):
            yield from value.elts[index : index + 1]
        elif value is not None and index == 0:
            yield value


def _axis(owner: ast.ClassDef, index: int, rank: int) -> int | None:
    """The axis along which `forward` lays a vector that it is given, `alpha.view(1, -1, 1)`, among as many as the gradient has."""
    forward = next((one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == "forward"), None)
    names = parameters_of(forward)[1:] if forward is not None else []
    found = {
        axis
        for node in walk(forward)
        if index < len(names) and (axis := _laid(node, names[index], rank)) is not None
    } if forward is not None else set()  # fmt: skip
    return found.pop() if len(found) == 1 else None


def _laid(node: ast.AST, name: str, rank: int) -> int | None:
    """The axis of `name.view(1, -1, 1)`, `name.reshape(1, -1, 1)` and `name[None, :, None]` that is not 1."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        target, axes = node.value, [isinstance(one, ast.Slice) for one in node.slice.elts]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("view", "reshape"):
        target, axes = node.func.value, [not (isinstance(one, ast.Constant) and one.value == 1) for one in node.args]
    else:
        return None
    is_vector = len(axes) == rank and sum(axes) == 1 and isinstance(target, ast.Name) and target.id == name
    return axes.index(True) if is_vector else None


def _edit(
    file: SourceFile, value: ast.expr, got: tuple[int, ...], wanted: tuple[int, ...], axis: int | None
) -> Edit | None:
    if len(wanted) == 2 and got == wanted[::-1] and wanted[0] != wanted[1]:
        return put_method(file, value, ".t()")
    ways = [
        kept for kept in itertools.combinations(range(len(got)), len(wanted)) if tuple(got[at] for at in kept) == wanted
    ]
    if len(ways) > 1 and axis is not None and (axis,) in ways:
        ways = [(axis,)]  # the batch is as large as the vector is long
    if len(ways) != 1 or len(got) == len(wanted) or isinstance(value, ast.Starred):
        return None
    surplus = [at for at in range(len(got)) if at not in ways[0]]
    summed = _summed(value, len(got))
    if summed is None:
        return put_method(file, value, f".sum(dim={_written(surplus)})")
    left = [at for at in range(len(got) + len(summed)) if at not in summed]
    assert isinstance(value, ast.Call)
    text = f"{file.segment(value.func)}(dim={_written(sorted([*summed, *(left[at] for at in surplus)]))})"
    return edit_of(file, value, text)


def _summed(value: ast.expr, rank: int) -> list[int] | None:
    """The axes over which `x.sum(0)` has summed already, counted in `x`; None for any other expression."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or value.func.attr != "sum":
        return None
    given = [*value.args, *(one.value for one in value.keywords if one.arg == "dim")]
    if len(given) != 1 or len(value.args) + len(value.keywords) != 1:
        return None
    try:
        axes = ast.literal_eval(given[0])
    except ValueError:
        return None
    axes = [axes] if isinstance(axes, int) else list(axes) if isinstance(axes, (tuple, list)) else []
    whole = rank + len(axes)
    return [axis % whole for axis in axes] if axes and all(isinstance(axis, int) for axis in axes) else None


def _written(axes: list[int]) -> str:
    return str(axes[0]) if len(axes) == 1 else str(tuple(axes))
