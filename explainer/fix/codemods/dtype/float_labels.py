"""`"labels": torch.tensor(rows, dtype=torch.float)` where a library's own loss takes each label as a number between 0 and 1.

The loss stands in the library (`problem_type="multi_label_classification"`): the labels are made floats where the batch is made,
or in the function that makes them, if nothing else calls it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.data.float_maker import FloatMaker, Made
from explainer.source.file import SourceFile
from explainer.source.value.binding import Value

_LOSS = "binary_cross_entropy_with_logits"
_KEYS = ("labels", "label", "targets", "target")
_WHY = "makes whole numbers of labels that the loss compares with probabilities"
_AT_TENSOR = "Make the labels floats where the batch is made: `torch.tensor(labels, dtype=torch.float)`"
_IN_MAKER = "Make the labels floats where they are made: `[float(name in tags) for name in NAMES]`"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all labels that the program puts into batches, where the failing loss is a library's."""
    frames = [frame for record in context.incident.exceptions for frame in record.frames]
    if not any(frame.function == _LOSS for frame in frames if frame.library) or _calls_it(context):
        return
    maker = FloatMaker(context.program)
    found = [one for file in context.program.parsed() for value in _labels(file) for one in maker.edits(value)]
    shared = maker.shared()
    made = [one for one in found if one.function not in shared]
    for path in dict.fromkeys(one.edit.file for one in made):
        yield _proposal([one for one in made if one.edit.file == path])


def _proposal(made: list[Made]) -> Proposal:
    first = made[0]
    return Proposal(
        edits=tuple(dict.fromkeys(one.edit for one in made)),
        culprit=culprit_of(first.file, first.node, _WHY),
        belief=2.0,
        title=_AT_TENSOR if first.function is None else _IN_MAKER,
    )


def _calls_it(context: Context) -> bool:
    """Whether the program's own code calls that loss: then its target is cast there."""
    return any(_LOSS in file.text or "BCEWithLogitsLoss" in file.text for file in context.program.parsed())


def _labels(file: SourceFile) -> Iterator[Value]:
    """What is put under a label's key into a dictionary."""
    for node in file.walk():
        pairs: list[tuple[object, ast.expr]] = []
        if isinstance(node, ast.Dict):
            pairs = [(getattr(key, "value", None), one) for key, one in zip(node.keys, node.values, strict=True)]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            pairs = [(getattr(node.targets[0].slice, "value", None), node.value)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
            pairs = [(one.arg, one.value) for one in node.keywords]
        yield from (Value(one, file) for key, one in pairs if key in _KEYS)
