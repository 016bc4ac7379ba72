"""What a hook returns in place of an in-place write of what it is given: `grad.mul_(0.1)` becomes `return grad.mul(0.1)`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from explainer.fix.codemod import edit_of, insert_after, insert_before
from explainer.fix.text.rewrite import put_method
from explainer.fix.write.out_of_place import links_of, out_of_place, outermost, without_underscore
from explainer.model.patch import Edit
from explainer.source.graph.write import AUGMENTED, FUNCTION, METHOD, SUBSCRIPT, Write
from explainer.source.name import Function, bound_names, dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import walk_scope
from explainer.source.value.callee import Callee

_NOTHING_ELSE = frozenset({"staticmethod"})


def returned(
    hook: Callee, name: str, writes: Sequence[Write], decorators: frozenset[str] = _NOTHING_ELSE
) -> tuple[Edit, ...]:
    """The writes out of place, and what the hook returns; none where one of them cannot be written so.

    `decorators` are those that change nothing about what the function gives back.
    """
    if not writes or any(_rewritten(one, name) == () for one in writes):
        return ()
    function = hook.function
    if isinstance(function, ast.Lambda):
        return _of_lambda(function, writes)
    own = list(walk_scope(function))
    calls = [one.node for one in writes]
    if not returns_only(function, name, calls, decorators):
        return ()
    if any(isinstance(one, ast.Assign) and name in set(bound_names(one)) and one.value not in calls for one in own):
        return ()
    returns = [one for one in own if isinstance(one, ast.Return)]
    last = function.body[-1]
    alone = next((one for one in writes if len(writes) == 1 and hook.file.statement(one.node) is last), None)
    if alone is not None and not isinstance(last, ast.Return) and alone.kind != SUBSCRIPT:
        return _returned(alone, name)
    edits = list(dict.fromkeys(edit for one in writes for edit in _rewritten(one, name)))
    first = min(one.node.lineno for one in writes)
    edits += [edit_of(hook.file, one, f"return {name}") for one in returns if _is_nothing(one) and one.lineno > first]
    if not isinstance(last, (ast.Return, ast.Raise)):
        edits.append(insert_after(hook.file, last, f"return {name}"))
    return tuple(edits)


def returns_only(
    function: Function, name: str, calls: Sequence[ast.AST] = (), decorators: frozenset[str] = _NOTHING_ELSE
) -> bool:
    """Whether a function gives back a name, what some calls of it give, or nothing."""
    own = list(walk_scope(function))
    around = {dotted_name(one.func if isinstance(one, ast.Call) else one) for one in function.decorator_list}
    if around - decorators or any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in own):
        return False
    returns = (one for one in own if isinstance(one, ast.Return))
    return all(_is_nothing(one) or dotted_name(one.value) == name or one.value in calls for one in returns)


def copied(hook: Callee, name: str, decorators: frozenset[str] = _NOTHING_ELSE) -> tuple[Edit, ...]:
    """A copy of what the hook is given before all else, which it writes and returns."""
    function = hook.function
    if isinstance(function, ast.Lambda):
        first = function.body
        while isinstance(first, (ast.Call, ast.Attribute)):
            first = first.func if isinstance(first, ast.Call) else first.value
        is_own = isinstance(first, ast.Name) and first.id == name and isinstance(function.body, ast.Call)
        return (put_method(hook.file, first, ".clone()"),) if is_own else ()
    if not returns_only(function, name, (), decorators):
        return ()
    ends = [one for one in walk_scope(function) if isinstance(one, ast.Return) and _is_nothing(one)]
    body = function.body
    is_text = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1
    edits = [insert_before(hook.file, body[1 if is_text else 0], f"{name} = {name}.clone()")]
    edits += [edit_of(hook.file, one, f"return {name}") for one in ends]
    if not isinstance(body[-1], (ast.Return, ast.Raise)):
        edits.append(insert_after(hook.file, body[-1], f"return {name}"))
    return tuple(edits)


def _is_nothing(node: ast.Return) -> bool:
    return node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)


def _rewritten(write: Write, name: str) -> tuple[Edit, ...]:
    """One write as an assignment; a part of the output is written into a clone of it."""
    if write.name == name and write.kind in (AUGMENTED, METHOD, FUNCTION):
        return out_of_place(write) or _lambda_body(write)
    if write.kind == SUBSCRIPT and write.name == name:
        return (insert_before(write.file, write.file.statement(write.node), f"{name} = {name}.clone()"),)
    return ()


def _lambda_body(write: Write) -> tuple[Edit, ...]:
    """`output.clamp_(-1, 1)` as the value of a lambda, without its underscore."""
    node = write.node
    if not isinstance(node, ast.Call):
        return ()
    outer = outermost(node, write.file)
    if not isinstance(write.file.parents.get(outer), ast.Lambda):
        return ()
    if outer is not node:
        return tuple(without_underscore(write.file, one) for one in links_of(outer))
    is_plain = not write.file.segment(node.func).endswith(("zero_", "fill_", "copy_", "normal_", "uniform_"))
    return (without_underscore(write.file, node.func),) if is_plain else ()


def _of_lambda(function: ast.Lambda, writes: Sequence[Write]) -> tuple[Edit, ...]:
    body = function.body
    is_all = len(writes) == 1 and isinstance(body, ast.Call) and writes[0].node in walk(body)
    return _lambda_body(writes[0]) if is_all else ()


def _returned(write: Write, name: str) -> tuple[Edit, ...]:
    """The edits of the hook's last statement, with `return` in place of the assignment."""
    lead = f"{name} = "
    edits = out_of_place(write)
    return tuple(
        Edit(file=one.file, start=one.start, end=one.end, new="return " + one.new.removeprefix(lead))
        if one.new.startswith(lead)
        else one
        for one in edits
    )
