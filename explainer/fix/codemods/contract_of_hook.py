"""A module's backward hook keeps to its contract: a tuple of gradients or None, and one kind of hook for each module."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.crash import message_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.lineage import statements_of
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk

_FULL = "register_full_backward_hook"
_OLD = "register_backward_hook"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each hook that returns a bare tensor, and for the old kind of hook beside the full one."""
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


def _method(node: ast.AST) -> str:
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def _renamed(file: SourceFile, node: ast.AST) -> Edit:
    assert isinstance(node, ast.Call)
    end = file.span(node.func)[1]
    return Edit(file=file.path, start=end - len(_OLD), end=end, new=_FULL)


def _wrapped(file: SourceFile, hook: ast.expr, program: Program) -> Iterator[Proposal]:
    """`return 0.5 * grad_input[0]` as `return (0.5 * grad_input[0],)`."""
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
            yield Proposal(
                edits=(edit_of(where, value, f"({where.segment(value)},)"),),
                culprit=culprit_of(where, value, why),
                belief=1.5,
            )


def _is_tensor(value: ast.expr, gradients: str) -> bool:
    """Whether a returned value is computed from the first gradient, as one tensor."""
    is_computed = isinstance(value, (ast.BinOp, ast.Call, ast.UnaryOp, ast.Subscript))
    if isinstance(value, ast.Call) and dotted_name(value.func) in ("tuple", "list"):
        return False
    reads = [node for node in walk(value) if isinstance(node, ast.Subscript) and dotted_name(node.value) == gradients]
    return is_computed and bool(gradients) and bool(reads)
