"""A monitor is given the name under which the metric is logged: `monitor="val_loss"` becomes `monitor="valid_loss"`.

The message names what is watched and what there is. Only where one metric of those says the same in other words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from explainer.fix.codemod import Context, Proposal, culprit_at
from explainer.fix.setting.edit import set_value
from explainer.model.patch import Edit
from explainer.source.setting.python import read_python
from explainer.source.setting.setting import Setting

_KEYS = frozenset(("monitor", "metric_for_best_model"))
_ALIKE = {
    "validation": "val", "valid": "val", "eval": "val", "dev": "val", "acc": "accuracy", "err": "error", "avg": "mean", "trn": "train",
    "tr": "train", "training": "train", "rec": "recall", "ppl": "perplexity", "f1score": "f1",
}  # fmt: skip
# What is measured over data apart from these is another metric.
_FILLERS = frozenset(("epoch", "mean", "score", "metric", "total"))
_PREFIX = "eval_"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each place in which the metric that is missed is named."""
    asked = str(context.fields.get("metric", ""))
    there = re.findall(r"[\w./-]+", str(context.fields.get("available", "")))
    meant = _meant(asked, there)
    if not asked or meant is None:
        return
    for one, new in _places(context, asked, meant):
        edit = set_value(one, new)
        if isinstance(edit, Edit):
            yield Proposal(
                edits=(edit,),
                culprit=culprit_at(one.file, one.span, f"watches `{one.value}`, and what is there is `{meant}`"),
                belief=2.0,
                title=f"Watch `{new}`, which is logged",
                because="of the metrics that there are it alone says the same",
            )


def _places(context: Context, asked: str, meant: str) -> Iterator[tuple[Setting, str]]:
    """The settings that hold the name, and what each should hold: a trainer puts `eval_` before a name without it."""
    program = context.program
    found = [one for file in program.parsed() for one in read_python(file)]
    for key in _KEYS:
        found += [one for document in program.documents(key) for one in document.settings]
    for one in found:
        if one.name not in _KEYS:
            continue
        if one.value == asked:
            yield one, meant
        elif isinstance(one.value, str) and asked == f"{_PREFIX}{one.value}":
            yield one, meant.removeprefix(_PREFIX)


def _meant(asked: str, there: Sequence[str]) -> str | None:
    """The one metric with the same words as the one that is missed, in any order and spelling; else None."""
    if not asked or asked in there:
        return None
    for sieve in (_words, _core):
        found = [one for one in there if sieve(one) == sieve(asked)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _words(name: str) -> frozenset[str]:
    parts = re.split(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])", name)
    return frozenset(_ALIKE.get(one.lower(), one.lower()) for one in parts if one)


def _core(name: str) -> frozenset[str]:
    return _words(name) - _FILLERS
