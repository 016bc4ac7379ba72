"""`model.to("cpu")` of a module on the meta device becomes `model.to_empty(device="cpu")`, where its weights are set afterwards.

A module that nothing initialises or loads afterwards is left alone: `to_empty` gives it whatever the memory held.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.blame import crash_frames
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name

_SETS = ("apply", "load_state_dict", "reset_parameters", "init_weights", "_init_weights")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each move that the traceback names."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        frames = crash_frames(file, context)
        for node in file.walk() if frames else ():
            if not isinstance(node, ast.Call) or node.lineno not in frames or not isinstance(node.func, ast.Attribute):
                continue
            name = dotted_name(node.func.value)
            if (
                name is None
                or node.func.attr != "to"
                or len(node.args) != 1
                or node.keywords
                or not _is_set_later(name, node, file)
            ):
                continue
            text = f"{name}.to_empty(device={file.segment(node.args[0])})"
            yield Proposal(
                edits=(edit_of(file, node, text),),
                culprit=culprit_of(file, node, f"copies weights that `{name}`, on the meta device, does not have"),
                belief=1.2,
            )


def _is_set_later(name: str, node: ast.Call, file: SourceFile) -> bool:
    return any(
        isinstance(one, ast.Call)
        and one.lineno > node.lineno
        and isinstance(one.func, ast.Attribute)
        and one.func.attr in _SETS
        and dotted_name(one.func.value) == name
        for one in file.walk()
    )
