"""Points at the learning rate of a training that diverged: where its number is written. No edit.

What rate is right, or whether clipping or a warm-up is, the program does not say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.setting import Setting
from explainer.source.setting_flow import settings_behind

_NAMES = frozenset({"lr", "learning_rate", "max_lr", "base_lr", "learning-rate"})
_WHY = "is the rate of the optimizer"
_NO_WEIGHT = -0.5  # every training has a rate: that one is written speaks for nothing


def propose(context: Context) -> Iterator[Proposal]:
    """The largest rate of the configuration files, else of the optimizers' own arguments."""
    if not context.has_failed:
        return
    found = [one for one in (*_in_files(context.program), *_in_code(context.program)) if _rate(one) is not None]
    if found:
        largest = max(found, key=lambda one: _rate(one) or 0.0)
        yield Proposal(edits=(), culprit=culprit_at(largest.file, largest.span, _WHY), belief=_NO_WEIGHT)
        return
    for file in context.program.parsed():
        for node in file.walk():
            called = (context.program.names(file).qualified(node.func) or "") if isinstance(node, ast.Call) else ""
            if called.startswith("torch.optim.") and not called.startswith("torch.optim.lr_scheduler."):
                yield Proposal(edits=(), culprit=culprit_of(file, node, "steps at its rate"), belief=_NO_WEIGHT)
                return


def _in_files(program: Program) -> Iterator[Setting]:
    for document in program.documents():
        yield from (one for one in document.settings if one.name in _NAMES)


def _in_code(program: Program) -> Iterator[Setting]:
    """The numbers behind `lr=` of optimizers and of the arguments of trainers."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.keyword) and node.arg in _NAMES and not isinstance(node.value, ast.Call):
                if dotted_name(node.value) is None and not isinstance(node.value, ast.Constant):
                    continue
                yield from settings_behind(node.value, file, program)


def _rate(setting: Setting) -> float | None:
    value = setting.value
    if isinstance(value, str):  # YAML takes 1e-3 for a string
        try:
            return float(value)
        except ValueError:
            return None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
