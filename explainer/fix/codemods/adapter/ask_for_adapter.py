"""An adapter is added where the model itself has none of that name: `if task not in model.peft_config: model.add_adapter(task, ...)`.

Another table may have the name already, of all tasks to come, and then nothing is added before the adapter is activated.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.tree import walk


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the question behind which the adapter is added that the failing line activates."""
    if "not found" not in message_of(context):
        return
    for file, statement in raised_at(context):
        for call in walk(statement):
            if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "set_adapter" and call.args:
                yield from _asked(call, file)


def _asked(call: ast.Call, file: SourceFile) -> Iterator[Proposal]:
    assert isinstance(call.func, ast.Attribute)
    model, name = ast.unparse(call.func.value), ast.unparse(call.args[0])
    scope = file.enclosing(call, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module) or file.tree
    for node in walk(scope) if scope is not None else ():
        test = node.test if isinstance(node, ast.If) and node.lineno < call.lineno else None
        if (
            not isinstance(test, ast.Compare)
            or not isinstance(test.ops[0], ast.NotIn)
            or ast.unparse(test.left) != name
        ):
            continue
        held = test.comparators[0]
        adds = any(_adds(one, model, name) for one in walk(node))
        if adds and ast.unparse(held) != f"{model}.peft_config":
            yield Proposal(
                edits=(edit_of(file, held, f"{model}.peft_config"),),
                culprit=culprit_of(file, node.test, "asks another table than the model's own adapters"),  # type: ignore[attr-defined]
                belief=2.5,
                title=f"Ask the model which adapters it has: `{name} not in {model}.peft_config`",
            )


def _adds(node: ast.AST, model: str, name: str) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    is_adding = isinstance(func, ast.Attribute) and func.attr in ("add_adapter", "load_adapter")
    if not is_adding or not isinstance(node, ast.Call) or not isinstance(func, ast.Attribute):
        return False
    given = [*node.args, *(one.value for one in node.keywords)]
    return ast.unparse(func.value) == model and any(ast.unparse(one) == name for one in given)
