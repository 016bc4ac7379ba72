"""`t.register_hook(lambda grad: grad * mask)`: a mask of a wider dtype is brought to the gradient's, `mask.to(grad.dtype)`.

NumPy makes float64, and torch float32 under a model in half precision; the product takes the wider of both, and autograd
refuses it. What a hook has cast itself comes back in the gradient's dtype: autograd takes no other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.array_kind import TENSOR, kind_of
from explainer.source.value.binding import Value, bounds_of, walk_scope
from explainer.source.value.callee import Callee, callees_of
from explainer.source.value.dtype import CONVERSION, conversions, float64_births

_SAYS = re.compile(
    r"hook ['`\"](?P<hook>.{1,80}?)['`\"] has changed the type of value "
    r"\(was (?P<kind>torch(?:\.cuda)?)\.(?P<was>\w+)Tensor got (?P=kind)\.(?P<got>\w+)Tensor\)"
)
_WIDTHS = {"Half": 2, "BFloat16": 2, "Float": 4, "Double": 8}
_MEETS = frozenset({"mul", "multiply", "div", "divide", "add", "sub"})
_CASTS = frozenset({"double", "float", "to", "type", "clone", "detach"})
_NO_NAME = "<unknown>"
_TITLE = "Bring what the hook computes with to the dtype of its gradient: `grad * mask.to(grad.dtype)`"


@dataclass(frozen=True, slots=True)
class _Wide:
    """What a hook gives back: the operand that is wider than the gradient, else the result as a whole."""

    hook: Callee
    gradient: str
    node: ast.expr
    is_operand: bool
    origin: Value | None


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each result of the hook that the message names, if it is one, or one alone is seen to be wider."""
    found = _SAYS.search(message_of(context))
    if found is None or _WIDTHS.get(found["got"], 0) <= _WIDTHS.get(found["was"], 99):
        return
    hooks = {one.function: one for one in _hooks(context.program) if _is_named(one, found["hook"])}
    wide = {function: list(_wide(one, context.program)) for function, one in hooks.items()}
    seen = {function: ones for function, ones in wide.items() if any(one.origin is not None for one in ones)}
    chosen = seen or wide
    if len(chosen) != 1:
        return
    for number, one in enumerate(next(iter(chosen.values()))):
        yield _proposal(one, number)


def _proposal(one: _Wide, number: int) -> Proposal:
    file, text = one.hook.file, one.hook.file.segment(one.node)
    why = f"computes with `{text}`, which is wider than `{one.gradient}`"
    if not one.is_operand:
        why = f"gives back another dtype than that of `{one.gradient}`"
    culprit = culprit_of(file, one.node, why)
    if one.origin is not None:
        culprit = culprit_of(
            one.origin.file, one.origin.node, f"makes float64 of what `{one.gradient}` meets in a hook"
        )
    edit = put_method(file, one.node, f".to({one.gradient}.dtype)")
    return Proposal(edits=(edit,), culprit=culprit, belief=2.0 - 0.1 * number, title=_TITLE)


def _hooks(program: Program) -> Iterator[Callee]:
    """The functions that are hooks of tensors."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "register_hook":
                given = [*node.args[:1], *(one.value for one in node.keywords if one.arg == "hook")]
                for one in given:
                    yield from callees_of(one, file, program)


def _is_named(hook: Callee, name: str) -> bool:
    own = "<lambda>" if isinstance(hook.function, ast.Lambda) else hook.function.name
    return name in (own, _NO_NAME)


def _wide(hook: Callee, program: Program) -> Iterator[_Wide]:
    """What may be wider than the gradient in each result of a hook."""
    gradient = hook.parameter(0)
    if gradient is None:
        return
    function = hook.function
    bound = [one for one in bounds_of(function) if one.name == gradient]
    if len(bound) > 1:
        return
    for result in _results(hook):
        value = bound[0].node if bound and dotted_name(result) == gradient else _behind(result, hook)
        operand = _operand(value, gradient, hook.file, program)
        if operand is not None:
            yield _Wide(hook, gradient, operand, is_operand=True, origin=_origin(operand, hook.file, program))
        elif not bound and not _is_cast(value, gradient):
            inside = (one for one in walk(value) if isinstance(one, (ast.Name, ast.Attribute)))
            origins = (_origin(one, hook.file, program) for one in inside if dotted_name(one) != gradient)
            yield _Wide(hook, gradient, result, is_operand=False, origin=next((one for one in origins if one), None))


def _results(hook: Callee) -> list[ast.expr]:
    """What a hook gives back, but for nothing at all."""
    function = hook.function
    if isinstance(function, ast.Lambda):
        return [function.body]
    returned = [one.value for one in walk_scope(function) if isinstance(one, ast.Return) and one.value is not None]
    return [one for one in returned if not (isinstance(one, ast.Constant) and one.value is None)]


def _behind(result: ast.expr, hook: Callee) -> ast.expr:
    """What a name that the hook returns was bound to, once; else the result itself."""
    bound = [one for one in bounds_of(hook.function) if one.name == dotted_name(result)]
    is_whole = len(bound) == 1 and bound[0].pick is None and isinstance(bound[0].node, (ast.BinOp, ast.Call))
    return bound[0].node if is_whole else result


def _operand(value: ast.expr, gradient: str, file: SourceFile, program: Program) -> ast.expr | None:
    """The one tensor that a result joins with the gradient as it came."""
    if isinstance(value, ast.BinOp):
        sides = [value.left, value.right]
    elif isinstance(value, ast.Call) and (getattr(value.func, "attr", "") in _MEETS):
        own = value.func.value if isinstance(value.func, ast.Attribute) else value.func
        is_function = dotted_name(own) == "torch"
        sides = [*value.args] if is_function else [own, *value.args]
    else:
        return None
    others = [one for one in sides if dotted_name(one) != gradient]
    if len(others) != 1 or len(sides) != 2:
        return None
    names = {one.id for one in walk(others[0]) if isinstance(one, ast.Name)}
    is_tensor = gradient not in names and kind_of(Value(others[0], file), program) == TENSOR
    return others[0] if is_tensor else None


def _origin(node: ast.expr, file: SourceFile, program: Program) -> Value | None:
    """Where a value is made float64: the array that NumPy makes so, else where it becomes a tensor."""
    value = Value(node, file)
    births = float64_births(value, program) or conversions(value, program)
    if not births:
        return None
    made = births[0].value
    if births[0].kind == CONVERSION and isinstance(made.node, ast.Call) and made.node.args:
        arrays = float64_births(Value(made.node.args[0], made.file, made.arguments), program)
        return arrays[0].value if arrays else made
    return made


def _is_cast(value: ast.expr, gradient: str) -> bool:
    """Whether a result is the gradient itself, or no more than a cast of it."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _CASTS:
        value = value.func.value
    return dotted_name(value) == gradient
