"""Weights that are differentiated are taken with their graph: `model.state_dict(keep_vars=True)` for `model.state_dict()`.

A state dict holds detached values. Only where `torch.func.functional_call` runs a module on what a function made of one, or such
values are asked for their gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places, message_of
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import add_argument
from explainer.source.file import SourceFile
from explainer.source.graph.given_weights import FUNCTIONAL_CALLS
from explainer.source.program import Program

_SAID = ("does not require grad", "not have been used in the graph")
# What takes a state dict for its values.
_STORES = frozenset(("load_state_dict", "save", "deepcopy", "copy", "update", "dump", "dumps"))


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each state dict whose values go on into a module that is called on them."""
    if not any(one in message_of(context) for one in _SAID) or not _is_functional(context.program):
        return
    near = {id(file) for file, _ in crash_places(context)}
    for file in context.program.parsed():
        for node in file.attributes.get("state_dict", ()):
            call = file.parents.get(node)
            if not isinstance(call, ast.Call) or call.func is not node or call.args or call.keywords:
                continue
            if _is_stored(call, file):
                continue
            yield Proposal(
                edits=(add_argument(file, call, "keep_vars=True"),),
                culprit=culprit_of(file, call, "hands out detached values: no gradient finds the weights"),
                belief=2.0 if id(file) in near else 1.0,
            )


def _is_functional(program: Program) -> bool:
    return any(
        program.names(file).is_call(node, *FUNCTIONAL_CALLS)
        for file in program.parsed()
        for node in file.walk()
        if isinstance(node, ast.Call)
    )


def _is_stored(call: ast.Call, file: SourceFile) -> bool:
    """Whether the values are saved, loaded or copied where they are asked for, or in a function that says so by its name."""
    node: ast.AST | None = file.parents.get(call)
    while node is not None and not isinstance(node, ast.stmt):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in _STORES:
            return True
        node = file.parents.get(node)
    function = file.enclosing(call, ast.FunctionDef)
    return isinstance(function, ast.FunctionDef) and any(
        one in function.name for one in ("save", "load", "ema", "average")
    )
