"""`"labels": torch.tensor(rows, dtype=torch.float)` where a library's own loss takes each label as a number between 0 and 1.

The loss stands in the library (`problem_type="multi_label_classification"`): the labels are made floats where the batch is made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.rewrite import add_argument, spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.tree import walk

_LOSS = "binary_cross_entropy_with_logits"
_KEYS = ("labels", "label", "targets", "target")
_MAKERS = ("torch.tensor", "torch.as_tensor")
_INTEGERS = ("torch.long", "torch.int64", "torch.int", "torch.int32")


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all labels that the program puts into batches, where the failing loss is a library's."""
    frames = [frame for record in context.incident.exceptions for frame in record.frames]
    if not any(frame.function == _LOSS for frame in frames if frame.library) or _calls_it(context):
        return
    for file in context.program.parsed():
        names = context.program.names(file)
        made = [(value, edit) for value in _labels(file) if (edit := _edit(value, file, names)) is not None]
        if made:
            why = "makes whole numbers of labels that the loss compares with probabilities"
            yield Proposal(
                edits=tuple(edit for _, edit in made), culprit=culprit_of(file, made[0][0], why), belief=2.0,
                title="Make the labels floats where the batch is made: `torch.tensor(labels, dtype=torch.float)`",
            )  # fmt: skip


def _calls_it(context: Context) -> bool:
    """Whether the program's own code calls that loss: then its target is cast there."""
    return any(_LOSS in file.text or "BCEWithLogitsLoss" in file.text for file in context.program.parsed())


def _labels(file: SourceFile) -> Iterator[ast.expr]:
    """What is put under a label's key into a dictionary."""
    for node in file.walk():
        pairs: list[tuple[ast.expr | None, ast.expr]] = []
        if isinstance(node, ast.Dict):
            pairs = list(zip(node.keys, node.values, strict=True))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            pairs = [(node.targets[0].slice, node.value)]
        yield from (one for key, one in pairs if getattr(key, "value", None) in _KEYS)


def _edit(value: ast.expr, file: SourceFile, names: Names) -> Edit | None:
    if not isinstance(value, ast.Call):
        return None
    if isinstance(value.func, ast.Attribute) and value.func.attr == "long" and not value.args:
        return edit_of(file, value, f"{file.segment(value.func.value)}.float()")
    if names.is_call(value, "torch.LongTensor"):
        return edit_of(file, value.func, spell(names, "torch.FloatTensor"))
    if not names.is_call(value, *_MAKERS):
        return None
    dtype = next((one.value for one in value.keywords if one.arg == "dtype"), None)
    if dtype is None:
        made = any(isinstance(one, ast.Constant) and isinstance(one.value, float) for one in walk(value))
        return None if made else add_argument(file, value, f"dtype={spell(names, 'torch.float')}")
    return edit_of(file, dtype, spell(names, "torch.float")) if names.qualified(dtype) in _INTEGERS else None
