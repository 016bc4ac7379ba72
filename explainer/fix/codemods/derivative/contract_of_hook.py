"""A hook keeps to its contract: a module's gives a tuple of gradients or None and is of one kind, a tensor's keeps its shape.

A hook that only looks, and hands on what its last call happens to return, returns nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.fix.text.rewrite import free_name, put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.selection import ELEMENTWISE
from explainer.source.name import Function, bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import statements_of

_FULL = "register_full_backward_hook"
_OLD = "register_backward_hook"
_SILENT = "A hook that only looks returns nothing"
_FLATTENS = frozenset({"flatten", "view", "reshape", "ravel", "squeeze", "unsqueeze"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each hook that returns a bare tensor or another shape, and for the old kind of hook beside the full one."""
    if not context.has_failed:
        return
    registered = [
        (file, node) for file in context.program.parsed() for node in file.walk() if _method(node) in (_FULL, _OLD)
    ]
    kinds = {_method(node) for _, node in registered}
    is_mixed = "regular backward hooks and full backward hooks" in message_of(context)
    if len(kinds) == 2 and is_mixed:
        old = [(file, node) for file, node in registered if _method(node) == _OLD]
        edits = tuple(_renamed(file, node) for file, node in old)
        file, node = old[0]
        yield Proposal(
            edits=edits,
            culprit=culprit_of(file, node, "registers the old kind of hook on a module that has a full one"),
            belief=2.0,
        )
        return
    for file, node in registered:
        if isinstance(node, ast.Call) and node.args and not is_mixed:
            yield from _wrapped(file, node.args[0], context.program)
    yield from _of_tensors(context)


def _of_tensors(context: Context) -> Iterator[Proposal]:
    """An edit for each hook of a tensor that gives back what is no gradient, or one of another shape."""
    message = message_of(context)
    cure = (
        _silenced
        if "but hook returned" in message
        else _reshaped
        if "has changed the size of value" in message
        else None
    )
    for file in context.program.parsed() if cure is not None else ():
        for node in file.walk():
            if cure is not None and _method(node) == "register_hook" and isinstance(node, ast.Call) and node.args:
                yield from cure(file, node.args[0], context.program)


def _silenced(file: SourceFile, hook: ast.expr, program: Program) -> Iterator[Proposal]:
    """`return log.update(grad.norm().item())` without its `return`; a lambda of that becomes a function before its statement."""
    why = "gives back what its call returns, which autograd takes for the gradient"
    if isinstance(hook, ast.Lambda):
        own = hook.args.args[0].arg if len(hook.args.args) == 1 else ""
        if isinstance(hook.body, ast.Call) and _only_reads(hook.body, own):
            statement = file.statement(hook)
            name = free_name("hook", file.tree or hook)
            text = f"def {name}({ast.unparse(hook.args)}):\n    {file.segment(hook.body)}\n"
            yield Proposal(
                edits=(insert_before(file, statement, text), edit_of(file, hook, name)),
                culprit=culprit_of(file, hook, why),
                belief=2.0,
                title=_SILENT,
            )
        return
    found = _function_of(file, hook, program)
    own = next((one.arg for one in found[1].args.args if one.arg != "self"), "") if found is not None else ""
    for one in statements_of(found[1]) if found is not None else ():
        if (
            found is not None
            and isinstance(one, ast.Return)
            and isinstance(one.value, ast.Call)
            and _only_reads(one.value, own)
        ):
            where = found[0]
            yield Proposal(
                edits=(edit_of(where, one, where.segment(one.value)),),
                culprit=culprit_of(where, one, why),
                belief=2.0,
                title=_SILENT,
            )


def _only_reads(call: ast.Call, gradient: str) -> bool:
    """Whether a call notes numbers of a gradient somewhere: `norms.append(grad.norm().item())`."""
    noted = [
        node
        for one in call.args
        for node in walk(one)
        if _method(node) in ("item", "tolist", "cpu", "numpy", "detach", "clone")
    ]
    return bool(gradient) and any(
        isinstance(one, ast.Name) and one.id == gradient for each in noted for one in walk(each)
    )


def _reshaped(file: SourceFile, hook: ast.expr, program: Program) -> Iterator[Proposal]:
    """`return flat * scale` of a hook that has flattened its gradient, as `return (flat * scale).view_as(grad)`."""
    found = _function_of(file, hook, program)
    own = [one.arg for one in found[1].args.args if one.arg != "self"] if found is not None else []
    if found is None or len(own) != 1:
        return
    where, function = found
    flat: dict[str, bool | None] = {own[0]: False}
    for one in statements_of(function):
        value = one.value if isinstance(one, (ast.Assign, ast.Return)) else None
        if value is None:
            continue
        is_flat = _is_flat(value, flat)
        if isinstance(one, ast.Assign):
            flat |= dict.fromkeys(bound_names(one), True if is_flat else None)
        elif is_flat:
            why = f"gives back `{own[0]}` in another shape"
            yield Proposal(
                edits=(put_method(where, value, f".view_as({own[0]})"),),
                culprit=culprit_of(where, one, why),
                belief=1.8,
            )


def _is_flat(value: ast.expr, flat: dict[str, bool | None]) -> bool:
    """Whether an expression has the elements of a gradient in another shape: flattened, and computed with one by one.

    `flat` says so of names; None is said of one that has other elements.
    """
    if isinstance(value, ast.Name):
        return bool(flat.get(value.id))
    if isinstance(value, ast.BinOp):
        return _is_flat(value.left, flat) or _is_flat(value.right, flat)
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    if value.func.attr in _FLATTENS:
        return any(isinstance(one, ast.Name) and flat.get(one.id) is not None for one in walk(value.func.value))
    return value.func.attr in ELEMENTWISE and _is_flat(value.func.value, flat)


def _function_of(file: SourceFile, hook: ast.expr, program: Program) -> tuple[SourceFile, Function] | None:
    """The function that a hook is: named, a method, or what calling the object itself runs."""
    if isinstance(hook, ast.Name) and hook.id == "self":
        owner = program.names(file).class_of(hook)
        body = owner.body if owner is not None else ()
        found = next((one for one in body if isinstance(one, ast.FunctionDef) and one.name == "__call__"), None)
        return (file, found) if found is not None else None
    return program.find_function(dotted_name(hook) or "")


def _method(node: ast.AST) -> str:
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def _renamed(file: SourceFile, node: ast.AST) -> Edit:
    assert isinstance(node, ast.Call)
    end = file.span(node.func)[1]
    return Edit(file=file.path, start=end - len(_OLD), end=end, new=_FULL)


def _wrapped(file: SourceFile, hook: ast.expr, program: Program) -> Iterator[Proposal]:
    """`return 0.5 * grad_input[0]` as `return (0.5 * grad_input[0],)`; or with None handed on, which data has for its gradient."""
    found = program.find_function(dotted_name(hook) or "")
    if isinstance(hook, ast.Lambda):
        values = [(file, hook.body)]
        first = hook.args.args[1].arg if len(hook.args.args) > 1 else ""
    elif found is not None:
        where, function = found
        values = [
            (where, one.value)
            for one in statements_of(function)
            if isinstance(one, ast.Return) and one.value is not None
        ]
        own = [one.arg for one in function.args.args if one.arg != "self"]
        first = own[1] if len(own) > 1 else ""
    else:
        return
    for where, value in values:
        if _is_tensor(value, first):
            why = "returns a bare tensor, whose rows are taken for the gradients of the inputs"
            text, given = where.segment(value), f"{first}[0]"
            for belief, one in ((1.5, text), (1.4, f"{text} if {given} is not None else None")):
                yield Proposal(
                    edits=(edit_of(where, value, f"({one},)"),), culprit=culprit_of(where, value, why), belief=belief
                )


def _is_tensor(value: ast.expr, gradients: str) -> bool:
    """Whether a returned value is computed from the first gradient, as one tensor."""
    is_computed = isinstance(value, (ast.BinOp, ast.Call, ast.UnaryOp, ast.Subscript))
    if isinstance(value, ast.Call) and dotted_name(value.func) in ("tuple", "list"):
        return False
    reads = [node for node in walk(value) if isinstance(node, ast.Subscript) and dotted_name(node.value) == gradients]
    return is_computed and bool(gradients) and bool(reads)
