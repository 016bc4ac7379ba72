"""A model that each round of a loop adapts is loaded in the round: the next one would find the last one's adapter in it.

For cross-validation and sweeps: `model = X.from_pretrained(path)` before the loop, `model.add_adapter(config)` or
`get_peft_model(model, config)` in it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.blame import crash_frames
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before, remove_statement
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.peft import WRAPS
from explainer.source.tree import walk
from explainer.source.value.binding import scope_of
from explainer.source.value.lineage import binds


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each call that adds an adapter in a loop, on a line that the traceback names."""
    for file in context.program.parsed() if context.has_failed else ():
        lines = crash_frames(file, context)
        for node in file.walk() if lines else ():
            model = _adapted(node, file, context) if isinstance(node, ast.Call) and node.lineno in lines else None
            if model is not None:
                yield from _moved(model, node, file)


def _adapted(call: ast.Call, file: SourceFile, context: Context) -> str | None:
    """The name of the model to which a call adds an adapter."""
    if context.program.names(file).is_call(call, *WRAPS) and call.args:
        return dotted_name(call.args[0])
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == "add_adapter"
    return dotted_name(call.func.value) if is_method and isinstance(call.func, ast.Attribute) else None


def _moved(model: str, call: ast.AST, file: SourceFile) -> Iterator[Proposal]:
    loop = file.enclosing(call, ast.For, ast.While)
    body = getattr(scope_of(call, file), "body", [])
    if not isinstance(loop, (ast.For, ast.While)) or loop not in body or not model.isidentifier():
        return
    made = [one for one in body[: body.index(loop)] if model in binds(one)]
    outside = [one for one in body if one is not loop and _names(model, one)]
    if len(made) != 1 or made != outside or not _is_load(made[0]) or any(model in binds(one) for one in loop.body):
        return
    why = f"loads `{model}` once; each round of line {loop.lineno} adds an adapter to what the round before has trained"
    yield Proposal(
        edits=(remove_statement(file, made[0]), insert_before(file, loop.body[0], file.segment(made[0]))),
        culprit=culprit_of(file, made[0], why),
        belief=1.8,
    )


def _names(name: str, statement: ast.stmt) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in walk(statement))


def _is_load(statement: ast.stmt) -> bool:
    """`model = X.from_pretrained(...)`: what is loaded is the same each time."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    calls = (one.func for one in walk(statement.value) if isinstance(one, ast.Call))
    return any(isinstance(one, ast.Attribute) and one.attr == "from_pretrained" for one in calls)
