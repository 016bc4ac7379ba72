"""A scheduler that waits for a plateau is told which metric to watch: `"monitor": "val_loss"` beside `"lr_scheduler"`.

What a callback of the program watches in the same direction, else the one loss, or the one error, that the validation logs under
a name that is written. What is logged in training is watched only where no validation logs anything.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import find_calls
from explainer.source.value.flow import arguments_of
from explainer.source.value.resolve import resolver_of

_VALIDATION = ("val", "valid", "dev", "eval")
_HOOKS = ("validation_", "on_validation_")
_FALLS = re.compile(
    r"(?:^|[^a-z])(?:mae|mse|rmse|mape|err|error|nll|bpc|wer|cer|ppl|perplexity)(?:[^a-z]|$)", re.IGNORECASE
)
_RISES = re.compile(r"(?:^|[^a-z])(?:acc|accuracy|f1|auc|auroc|map|iou|miou|dice|bleu|r2)(?:[^a-z]|$)", re.IGNORECASE)


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
    """What is to be watched; None where the program does not say it."""
    program = context.program
    mode = _mode(program)
    logged = tuple(_logged(program))
    watched = {name for name, way in _watched(program) if way == mode}
    if len(watched) == 1:
        return watched.pop()
    validated = {name for name, is_validation in logged if is_validation}
    candidates = validated or {name for name, _ in logged}
    if mode == "max":
        return _only(one for one in candidates if _RISES.search(one))
    losses = [one for one in candidates if "loss" in one.lower()]
    return _only(losses or [one for one in validated if _FALLS.search(one)])


def _only(names: Iterable[str]) -> str | None:
    found = set(names)
    return found.pop() if len(found) == 1 else None


def _mode(program: Program) -> str:
    """Whether the scheduler waits for a number to fall ("min") or to rise ("max")."""
    for _, call in find_calls(program):
        if (dotted_name(call.func) or "").rpartition(".")[2] == "ReduceLROnPlateau":
            given = [*call.args[1:2], *(one.value for one in call.keywords if one.arg == "mode")]
            return next((str(one.value) for one in given if isinstance(one, ast.Constant)), "min")
    return "min"


def _watched(program: Program) -> Iterator[tuple[str, str]]:
    """What the callbacks of the program watch, and in which direction."""
    for _, call in find_calls(program):
        given = {one.arg: one.value.value for one in call.keywords if isinstance(one.value, ast.Constant)}
        if isinstance(given.get("monitor"), str):
            yield str(given["monitor"]), str(given.get("mode", "min"))


def _logged(program: Program) -> Iterator[tuple[str, bool]]:
    """The names under which something is logged, and whether the validation does it."""
    for file, call in find_calls(program):
        if not call.args or not isinstance(call.func, ast.Attribute):
            continue
        first = call.args[0]
        keys = [first] if call.func.attr == "log" else []
        if call.func.attr == "log_dict" and isinstance(first, ast.Dict):
            keys = [key for key in first.keys if key is not None]
        for key in keys:
            for name, function in _written(key, file, program):
                is_hook = function is not None and function.name.startswith(_HOOKS)
                yield name, is_hook or name.lower().startswith(_VALIDATION)


def _written(key: ast.expr, file: SourceFile, program: Program) -> Iterator[tuple[str, Function | None]]:
    """What a name is at run time, and the hook that logs by it: `f"{stage}_loss"` is what each caller makes of it."""
    function = program.names(file).function_of(key)
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        yield key.value, function
    elif isinstance(key, ast.JoinedStr) and function is not None:
        for where, call in resolver_of(program).calls_of(function, file):
            given = dict(arguments_of(call, function))
            parts = [
                given.get(ast.unparse(one.value)) if isinstance(one, ast.FormattedValue) else one for one in key.values
            ]
            words = [one.value if isinstance(one, ast.Constant) else None for one in parts]
            if None not in words:
                yield "".join(map(str, words)), program.names(where).function_of(call)


def _added(node: ast.Dict, metric: str, file: SourceFile) -> Edit:
    at = file.span(node.values[-1])[1]
    return Edit(file=file.path, start=at, end=at, new=f', "monitor": "{metric}"')
