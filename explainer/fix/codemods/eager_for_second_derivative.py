"""Differentiates the uncompiled module where a second derivative is needed: `critic(x)` for `compiled(x)`.

A module that compiles itself (`net.compile()`) has no other form: it is not compiled.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, remove_statement
from explainer.source.binding import Value, bounds_of, calls_behind, scope_of
from explainer.source.cut import asks_for
from explainer.source.file import SourceFile
from explainer.source.module import is_module
from explainer.source.name import dotted_name


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each call of a compiled module whose gradient is taken with `create_graph=True`, or for what compiles it."""
    if context.has_failed:
        yield from _calls_of_compiled(context)
        yield from _compiled_in_place(context)


def _compiled_in_place(context: Context) -> Iterator[Proposal]:
    """`net.compile()` of a module, where the program compiles one in that way."""
    found = [
        (file, statement)
        for file in context.program.parsed()
        for statement in file.walk()
        if isinstance(statement, ast.Expr) and _compiles_itself(statement.value, file, context)
    ]
    if len(found) == 1:
        ((file, statement),) = found
        why = "compiles a module of which a second derivative is taken"
        yield Proposal(edits=(remove_statement(file, statement),), culprit=culprit_of(file, statement, why), belief=1.5)


def _compiles_itself(node: ast.expr, file: SourceFile, context: Context) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "compile":
        return False
    return is_module(Value(node.func.value, file), context.program)


def _calls_of_compiled(context: Context) -> Iterator[Proposal]:
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            is_grad = isinstance(node, ast.Call) and names.is_call(node, "torch.autograd.grad")
            if (
                not is_grad
                or not isinstance(node, ast.Call)
                or not asks_for(node, "create_graph", value=True)
                or not node.args
            ):
                continue
            for call in calls_behind(node.args[0], file):
                eager = _eager(call, file, context)
                if eager is not None:
                    yield Proposal(
                        edits=(edit_of(file, call.func, eager),),
                        culprit=culprit_of(
                            file, call, f"runs `{file.segment(call.func)}` compiled, which has no second derivative"
                        ),
                        belief=2.0,
                    )


def _eager(call: ast.Call, file: SourceFile, context: Context) -> str | None:
    """The module that was compiled under the called name; `_orig_mod` where the name was bound anew."""
    name = dotted_name(call.func)
    scopes = [scope_of(call, file), *([file.tree] if file.tree is not None else [])]
    found = [one for scope in scopes for one in bounds_of(scope) if one.name == name]
    for bound in reversed(found):
        made = bound.node
        if isinstance(made, ast.Call) and context.program.names(file).is_call(made, "torch.compile") and made.args:
            source = dotted_name(made.args[0])
            return source if source is not None and source != name else f"{name}._orig_mod"
    return None
