"""A classifier gets as many classes as its labels have names: `num_labels=len(QUEUES)` where labels are `QUEUES.index(name)`.

transformers builds two classes unless told otherwise. What the labels are positions in is read in the program: a list that is
asked for an index, or a dictionary that numbers names.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.import_line import imported
from explainer.fix.text.rewrite import add_argument
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import bound_names, dotted_name

_LABELS = frozenset({"label", "labels", "target", "targets", "y", "tag", "tags", "label_ids", "class_id"})
_CLASSIFIER = re.compile(r"For(?:Sequence|Token|Image|Audio|Video|AudioFrame)Classification$")
_COUNTS = frozenset({"num_labels", "num_classes", "n_classes", "classes", "n_labels"})
_SAYS = frozenset({"num_labels", "id2label", "label2id", "config"})
_DEFAULT = 2  # classes of a transformers model that is not told


class _Names(NamedTuple):
    """A list or dictionary of a module in whose order the labels are counted."""

    name: str
    file: SourceFile


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each classifier that is built for fewer classes than the label that it was refused."""
    top = context.fields.get("target")
    found = {one.name: one for file in context.program.parsed() for one in _numbering(file)}
    if not context.has_failed or top is None or len(found) != 1:
        return
    (names,) = found.values()
    uses_classifier = any(
        isinstance(node, (ast.Name, ast.Attribute)) and _CLASSIFIER.search((dotted_name(node) or "").rpartition(".")[2])
        for file in context.program.parsed()
        for node in file.walk()
    )
    for file in context.program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call):
                yield from _counted(node, file, names, int(str(top)))
                if uses_classifier and int(str(top)) >= _DEFAULT:
                    yield from _untold(node, file, names, context)


def _numbering(file: SourceFile) -> Iterator[_Names]:
    """What a module's labels are positions in: `NAMES.index(x)`, or `ids[x]` of `{name: i for i, name in enumerate(...)}`."""
    held = {
        name: one.value
        for one in (file.tree.body if file.tree else ())
        if isinstance(one, ast.Assign)
        for name in bound_names(one)
    }
    for node in file.walk():
        owner: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "index":
            owner = node.func.value
        elif isinstance(node, ast.Subscript) and _numbers(held.get(dotted_name(node.value) or "")):
            owner = node.value
        name = dotted_name(owner) if owner is not None else None
        if name is not None and name in held and isinstance(node, ast.expr) and _is_label(node, file):
            yield _Names(name, file)


def _numbers(value: ast.expr | None) -> bool:
    is_made = isinstance(value, ast.DictComp) and len(value.generators) == 1
    source = value.generators[0].iter if is_made and isinstance(value, ast.DictComp) else None
    return isinstance(source, ast.Call) and dotted_name(source.func) == "enumerate"


def _is_label(node: ast.expr, file: SourceFile) -> bool:
    """Whether an expression is an entry, an argument or a variable that is named like a label, or a part of one."""
    inner: ast.AST = node
    above = file.parents.get(node)
    while above is not None and not isinstance(above, (ast.FunctionDef, ast.ClassDef, ast.Module)):
        if isinstance(above, ast.Dict) and inner in above.values:
            key = above.keys[above.values.index(inner)]
            return isinstance(key, ast.Constant) and key.value in _LABELS
        if isinstance(above, ast.keyword):
            return above.arg in _LABELS
        if isinstance(above, ast.Assign):
            return bool(_LABELS & {name.rpartition(".")[2] for name in bound_names(above)})
        inner, above = above, file.parents.get(above)
    return False


def _counted(call: ast.Call, file: SourceFile, names: _Names, top: int) -> Iterator[Proposal]:
    """`num_labels=3` where a label is 4."""
    for one in call.keywords:
        is_few = isinstance(one.value, ast.Constant) and isinstance(one.value.value, int) and one.value.value <= top
        if one.arg in _COUNTS and is_few:
            text, edits = _spelled(names, file)
            yield _proposal(call, file, (*edits, edit_of(file, one.value, f"len({text})")), names)


def _untold(call: ast.Call, file: SourceFile, names: _Names, context: Context) -> Iterator[Proposal]:
    """`BertConfig(...)`, or a classifier's `from_pretrained(...)`, which says nothing of classes."""
    called = context.program.names(file).qualified(call.func) or ""
    owner, _, last = called.rpartition(".")
    is_config = called.startswith("transformers.") and last.endswith("Config")
    is_loaded = last == "from_pretrained" and bool(_CLASSIFIER.search(owner))
    given = {one.arg for one in call.keywords}
    if (is_config or is_loaded) and not given & _SAYS and None not in given:
        text, edits = _spelled(names, file)
        yield _proposal(call, file, (*edits, add_argument(file, call, f"num_labels=len({text})")), names)


def _spelled(names: _Names, file: SourceFile) -> tuple[str, tuple[Edit, ...]]:
    """How a file reads the names, with the import that it may need."""
    if file is names.file:
        return names.name, ()
    stem = os.path.splitext(os.path.basename(names.file.path))[0]
    for one in file.walk():
        if isinstance(one, ast.ImportFrom) and (one.module or "").rpartition(".")[2] == stem and not one.level:
            return imported(file, one.module or stem, names.name)
        for alias in one.names if isinstance(one, ast.Import) else ():
            if alias.name == stem:
                return f"{alias.asname or stem}.{names.name}", ()
    return imported(file, stem, names.name)


def _proposal(call: ast.Call, file: SourceFile, edits: tuple[Edit, ...], names: _Names) -> Proposal:
    why = f"builds fewer classes than `{names.name}` has, in whose order the labels are counted"
    return Proposal(edits=edits, culprit=culprit_of(file, call, why), belief=2.0)
