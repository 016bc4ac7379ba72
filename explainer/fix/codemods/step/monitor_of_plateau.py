"""A scheduler that waits for a plateau is told which metric to watch: `"monitor": "val_loss"` beside `"lr_scheduler"`.

Only where one loss of the validation is logged under a name that is written; without one, where one loss is logged at all.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.crash import message_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.tree import walk

_VALIDATION = ("val", "valid", "dev", "eval")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each dictionary of `configure_optimizers` with a scheduler and without a monitor."""
    if "must include a monitor when a `ReduceLROnPlateau`" not in message_of(context):
        return
    metric = _metric(context)
    for file in context.program.parsed():
        for made in (
            one for one in file.walk() if isinstance(one, ast.FunctionDef) and one.name == "configure_optimizers"
        ):
            for node in walk(made):
                place = _place(node) if isinstance(node, ast.Dict) else None
                if place is None or not isinstance(node, ast.Dict):
                    continue
                edits = (_added(place, metric, file),) if metric is not None else ()
                yield Proposal(
                    edits=edits,
                    culprit=culprit_of(file, place, "has a scheduler that waits for a metric, and names none"),
                    belief=2.0 if edits else 1.0,
                    title=f"Watch `{metric}`" if metric else None,
                )


def _place(node: ast.Dict) -> ast.Dict | None:
    """The dictionary that takes the monitor: that of the scheduler, where it has one of its own."""
    entries = {
        key.value: value for key, value in zip(node.keys, node.values, strict=True) if isinstance(key, ast.Constant)
    }
    scheduler = entries.get("lr_scheduler")
    if scheduler is None or "monitor" in entries:
        return None
    if not isinstance(scheduler, ast.Dict):
        return node
    inner = {key.value for key in scheduler.keys if isinstance(key, ast.Constant)}
    return None if "monitor" in inner else scheduler


def _metric(context: Context) -> str | None:
    """The one loss that is logged, of the validation where there is one."""
    names = {
        node.args[0].value
        for file in context.program.parsed()
        for node in file.walk()
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "log" and node.args
        and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
    }  # fmt: skip
    losses = [one for one in names if "loss" in one.lower()]
    validated = [one for one in losses if one.lower().startswith(_VALIDATION)]
    found = validated or losses
    return found[0] if len(found) == 1 else None


def _added(node: ast.Dict, metric: str, file: SourceFile) -> Edit:
    at = file.span(node.values[-1])[1]
    return Edit(file=file.path, start=at, end=at, new=f', "monitor": "{metric}"')
