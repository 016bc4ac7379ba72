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
from explainer.source.value.binding import bounds_of, scope_of

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
    if isinstance(value, ast.Name):
        made = [one.node for one in bounds_of(scope_of(value, file)) if one.name == value.id and not one.fills]
        return _edit(made[0], file, names) if len(made) == 1 and not isinstance(made[0], ast.Name) else None
    if isinstance(value, (ast.ListComp, ast.List, ast.BinOp)):
        return _edit_of_list(value, file)
    if not isinstance(value, ast.Call):
        return None
    if isinstance(value.func, ast.Attribute) and value.func.attr == "long" and not value.args:
        return edit_of(file, value, f"{file.segment(value.func.value)}.float()")
    if names.is_call(value, "torch.LongTensor"):
        return edit_of(file, value.func, spell(names, "torch.FloatTensor"))
    if names.is_call(value, *_MAKERS):
        return _edit_of_tensor(value, file, names)
    is_list = isinstance(value.func, ast.Name) and value.func.id == "list" and value.args
    return _edit_of_map(value.args[0], file) if is_list else None


def _edit_of_tensor(value: ast.Call, file: SourceFile, names: Names) -> Edit | None:
    """`torch.tensor(rows)` and `torch.tensor(rows, dtype=torch.long)` with `dtype=torch.float`."""
    dtype = next((one.value for one in value.keywords if one.arg == "dtype"), None)
    if dtype is not None:
        return edit_of(file, dtype, spell(names, "torch.float")) if names.qualified(dtype) in _INTEGERS else None
    made_float = any(isinstance(one, ast.Constant) and isinstance(one.value, float) for one in walk(value))
    return None if made_float else add_argument(file, value, f"dtype={spell(names, 'torch.float')}")


def _edit_of_list(value: ast.expr, file: SourceFile) -> Edit | None:
    """`[int(x) for x in xs]` as `[float(x) for x in xs]`, `[1 if x else 0 ...]` and `[0] * n` with their numbers as floats."""
    if isinstance(value, ast.BinOp):
        base = value.left if isinstance(value.op, ast.Mult) else None
        return _edit_of_list(base, file) if isinstance(base, ast.List) else None
    if isinstance(value, ast.List):
        one = value.elts[0] if len(value.elts) == 1 else None
        return edit_of(file, one, f"{file.segment(one)}.0") if one is not None and _is_whole(one) else None
    if not isinstance(value, ast.ListComp):
        return None
    one = value.elt
    if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "int" and len(one.args) == 1:
        return edit_of(file, one.func, "float")
    if isinstance(one, ast.IfExp) and _is_whole(one.body) and _is_whole(one.orelse):
        told = f"{file.segment(one.body)}.0 if {file.segment(one.test)} else {file.segment(one.orelse)}.0"
        return edit_of(file, one, told)
    return None


def _edit_of_map(value: ast.expr, file: SourceFile) -> Edit | None:
    """`list(map(int, xs))` as `list(map(float, xs))`."""
    is_map = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "map"
    cast = value.args[0] if is_map and isinstance(value, ast.Call) and value.args else None
    return edit_of(file, cast, "float") if isinstance(cast, ast.Name) and cast.id == "int" else None


def _is_whole(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int
