"""Points at the learning rate of a training that diverged: where its number is written. No edit.

What rate is right, or whether clipping or a warm-up is, the program does not say. That it is far above what the program's
optimizers are given does speak for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.setting.flow import settings_behind
from explainer.source.setting.setting import IN_CODE, Setting

_NAME = re.compile(r"(?!min_|end_|final_)(?:\w+_)?(?:lr|learning[-_]rate)|lr_(?:max|peak|init|base)", re.IGNORECASE)
_WHY = "is the rate of the optimizer"
_NO_WEIGHT = -0.5  # every training has a rate: that one is written speaks for nothing
_FAR_ABOVE = 1.0
# Ten times and more what papers and libraries give; Adadelta, LBFGS and Rprop scale their steps by other means.
_MOST = {
    "Adam": 0.05, "AdamW": 0.05, "NAdam": 0.05, "RAdam": 0.05, "Adamax": 0.1, "RMSprop": 0.05, "SGD": 2.0, "ASGD": 2.0,
}  # fmt: skip


def propose(context: Context) -> Iterator[Proposal]:
    """The largest rate of the configuration files, else of the optimizers' own arguments."""
    if not context.has_failed:
        return
    found = [one for one in (*_in_files(context.program), *_in_code(context.program)) if _rate(one) is not None]
    if found:
        largest = max(found, key=lambda one: _rate(one) or 0.0)
        above = _far_above(_rate(largest) or 0.0, context.program)
        why = f"{_WHY}, far above what {above} is usually given" if above else _WHY
        belief = _FAR_ABOVE if above else _NO_WEIGHT
        yield Proposal(edits=(), culprit=culprit_at(largest.file, largest.span, why), belief=belief)
        return
    for file, node, _ in _optimizers(context.program):
        yield Proposal(edits=(), culprit=culprit_of(file, node, "steps at its rate"), belief=_NO_WEIGHT)
        return


def _optimizers(program: Program) -> Iterator[tuple[SourceFile, ast.Call, str]]:
    """The calls that make an optimizer of torch, with its name."""
    for file in program.parsed():
        for node in file.walk():
            called = (program.names(file).qualified(node.func) or "") if isinstance(node, ast.Call) else ""
            if called.startswith("torch.optim.") and not called.startswith("torch.optim.lr_scheduler."):
                assert isinstance(node, ast.Call)
                yield file, node, called.rpartition(".")[2]


def _far_above(rate: float, program: Program) -> str | None:
    """The name of the program's one kind of optimizer, where the rate is far above what it is usually given."""
    kinds = {name for _, _, name in _optimizers(program)}
    name = kinds.pop() if len(kinds) == 1 else ""
    return name if rate >= _MOST.get(name, float("inf")) else None


def _in_files(program: Program) -> Iterator[Setting]:
    for document in program.documents():
        yield from (one for one in document.settings if _NAME.fullmatch(one.name))


def _in_code(program: Program) -> Iterator[Setting]:
    """The numbers behind `lr=` of optimizers and of the arguments of trainers."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.keyword) and _NAME.fullmatch(node.arg or ""):
                is_plain = dotted_name(node.value) is not None or isinstance(node.value, ast.Constant)
                found = settings_behind(node.value, file, program)
                # What is computed is no number that somebody wrote: of `lr=cfg.getfloat("train", "rate")` only the file's is.
                yield from (one for one in found if is_plain or one.kind not in IN_CODE)


def _rate(setting: Setting) -> float | None:
    value = setting.value
    if isinstance(value, str):  # YAML takes 1e-3 for a string
        try:
            return float(value)
        except ValueError:
            return None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
