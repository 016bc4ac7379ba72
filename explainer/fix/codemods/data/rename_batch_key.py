"""The key under which a collator hands over the labels becomes the model's: `{"input_ids": [], "tags": []}` says `labels`.

Which key that is the live batch has told. It is renamed wherever the collator, or a function that makes the batch for it, writes or
reads it on the batch; the rows keep their names. Nothing is proposed where something else of the program reads the batch by that key.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from explainer.fix.clue.blame import is_file
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.incident import BATCH_KEY
from explainer.model.patch import Edit
from explainer.source.data.batch_made import Batch, Maker, batch_of
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk

_TOLD = re.compile(r"(\w+) by (.+):(\d+)")
_NEW = "labels"
_READS = frozenset({"get", "pop", "setdefault"})
_OF_ROWS = frozenset({"__getitem__", "__iter__", "__getitems__"})
_MAPS = frozenset({"map", "filter"})
_MAKERS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
Place = tuple[SourceFile, ast.AST]


@dataclass(slots=True)
class _Uses:
    """Where the functions that make a batch write its key, where they read it, and whether anything else names it there."""

    written: list[Place] = field(default_factory=list)
    read: list[Place] = field(default_factory=list)
    is_open: bool = False


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the collator of the Trainer that failed."""
    fact = context.incident.fact(BATCH_KEY)
    told = _TOLD.fullmatch(fact.value) if fact is not None else None
    found = list(_makers(told[2], int(told[3]), context.program)) if told else []
    if told is None or len(found) != 1:
        return
    key, (file, maker) = told[1], found[0]
    batch = batch_of(maker, file, context.program)
    uses = _uses(key, batch)
    if uses.is_open or not uses.written or _is_read_elsewhere(key, batch, context.program):
        return
    places = sorted({*uses.written, *uses.read}, key=lambda one: (one[0].path, one[0].span(one[1])))
    edits = tuple(dict.fromkeys(_renamed(where, node, key) for where, node in places))
    first = next(one for one in places if one in uses.written)
    why = f'calls the labels "{key}", a name that the model does not take'
    yield Proposal(edits=edits, culprit=culprit_of(*first, why), belief=2.5)


def _makers(path: str, line: int, program: Program) -> Iterator[tuple[SourceFile, Maker]]:
    """The functions that begin at a line: with their first decorator, as Python counts it."""
    for file in program.parsed():
        for node in file.walk() if is_file(path, file) else ():
            if isinstance(node, _MAKERS) and _begins(node) == line:
                yield file, node


def _begins(node: Maker) -> int:
    first = node.decorator_list[:1] if not isinstance(node, ast.Lambda) else []
    return min([node.lineno, *(one.lineno for one in first)])


def _uses(key: str, batch: Batch) -> _Uses:
    uses = _Uses()
    for maker, file in batch.makers.items():
        for node in walk(maker):
            if isinstance(node, ast.keyword) and node.arg == key:
                _sort_keyword(node, file, maker, batch, uses)
            elif isinstance(node, ast.Constant) and node.value == key:
                _sort(node, file, maker, batch, uses)
            else:
                uses.is_open |= _stands_in_the_way(node, key, file, maker, batch)
    uses.is_open |= any(not any(_is_above(one, each) for one in uses.written) for each in uses.read)
    return uses


def _stands_in_the_way(node: ast.AST, key: str, file: SourceFile, maker: Maker, batch: Batch) -> bool:
    """Whether `batch.tags` reads the key, or a branch gives the batch labels of the model's own name."""
    if isinstance(node, ast.Attribute):
        return node.attr == key and _is_batch(node.value, maker, batch)
    if isinstance(node, ast.keyword):
        return node.arg == _NEW and file.parents.get(node) in batch.parts
    above = file.parents.get(node)
    is_key = isinstance(above, ast.Subscript) and _is_batch(above.value, maker, batch)
    return isinstance(node, ast.Constant) and node.value == _NEW and (is_key or above in batch.parts)


def _is_above(written: Place, read: Place) -> bool:
    """Whether a key was written before it is read, or by another function; what a library filled has the names of the rows."""
    file, node = written
    if file is not read[0] or file.enclosing(node, *_MAKERS) is not file.enclosing(read[1], *_MAKERS):
        return True
    statement = file.statement(node)
    return (statement.end_lineno or statement.lineno) < file.statement(read[1]).lineno


def _sort_keyword(node: ast.keyword, file: SourceFile, maker: Maker, batch: Batch, uses: _Uses) -> None:
    """`dict(tags=...)` that is the batch, or `batch.update(tags=...)`; a keyword of another call names something else."""
    call = file.parents.get(node)
    func = call.func if isinstance(call, ast.Call) else None
    is_update = isinstance(func, ast.Attribute) and func.attr == "update" and _is_batch(func.value, maker, batch)
    if is_update or (isinstance(func, ast.Name) and func.id == "dict" and call in batch.parts):
        uses.written.append((file, node))


def _sort(node: ast.Constant, file: SourceFile, maker: Maker, batch: Batch, uses: _Uses) -> None:
    above = file.parents.get(node)
    if isinstance(above, ast.Dict) and node in above.keys:
        uses.is_open |= above not in batch.parts
        uses.written.append((file, node))
    elif isinstance(above, (ast.Tuple, ast.List)) and above in batch.parts:
        uses.is_open |= not _are_keys_alone(above, file)
        uses.written.append((file, node))
    elif isinstance(above, ast.Subscript) and above.slice is node:
        is_load = isinstance(above.ctx, ast.Load)
        if _is_batch(above.value, maker, batch):
            is_read = is_load and not _fills_itself(maker, batch)
            (uses.read if is_read else uses.written).append((file, node))
        else:
            uses.is_open |= not is_load
    elif isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and node in above.args[:1]:
        if not _is_batch(above.func.value, maker, batch):
            uses.is_open |= above.func.attr not in _READS
        elif above.func.attr == "setdefault":
            uses.written.append((file, node))
        else:  # a key that the batch loses or looks for is not one that it is known to have
            uses.is_open = True
    else:
        uses.is_open = True


def _is_batch(node: ast.expr, maker: Maker, batch: Batch) -> bool:
    return node in batch.parts or (isinstance(node, ast.Name) and (maker, node.id) in batch.names)


def _are_keys_alone(keys: ast.expr, file: SourceFile) -> bool:
    """`{key: [] for key in ("input_ids", "tags")}`, whose values are made without the key."""
    made = file.enclosing(keys, ast.DictComp)
    if not isinstance(made, ast.DictComp) or not isinstance(made.key, ast.Name):
        return False
    name = made.key.id
    return (
        not any(isinstance(one, ast.Name) and one.id == name for one in walk(made.value)) and len(made.generators) == 1
    )


def _fills_itself(maker: Maker, batch: Batch) -> bool:
    """`batch = defaultdict(list)`, where reading a key makes it."""
    calls = [one.func for one, around in batch.parts.items() if around is maker and isinstance(one, ast.Call)]
    return any((dotted_name(one) or "").endswith("defaultdict") for one in calls)


def _is_read_elsewhere(key: str, batch: Batch, program: Program) -> bool:
    """Whether anything but what makes or maps the rows reads that key, a function takes it, or options name the labels."""
    inside = {node for maker in batch.makers for node in walk(maker)}
    for file in program.parsed():
        for node in file.walk():
            is_said = isinstance(node, ast.Constant) and node.value == key and node not in inside
            if is_said and _is_reading(node, file) and not _is_of_rows(node, file):
                return True
            if isinstance(node, ast.keyword) and node.arg == "label_names":
                return True
            if isinstance(node, ast.arg) and node.arg == key and _is_of_training(node, file):
                return True
    return False


def _is_of_training(node: ast.arg, file: SourceFile) -> bool:
    """Whether a parameter is one of a forward, or of a loss."""
    function = file.enclosing(node, ast.FunctionDef)
    return isinstance(function, ast.FunctionDef) and (function.name == "forward" or "loss" in function.name)


def _is_reading(node: ast.AST, file: SourceFile) -> bool:
    above = file.parents.get(node)
    if isinstance(above, ast.Subscript):
        return not isinstance(above.ctx, ast.Store)
    if isinstance(above, ast.Compare):
        return True
    return isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and above.func.attr in _READS


def _is_of_rows(node: ast.AST, file: SourceFile) -> bool:
    """Whether code stands in a data set's class, or in a function that maps rows."""
    owner = file.enclosing(node, ast.ClassDef)
    if isinstance(owner, ast.ClassDef):
        return any(isinstance(one, ast.FunctionDef) and one.name in _OF_ROWS for one in owner.body)
    function = file.enclosing(node, *_MAKERS)
    name = getattr(function, "name", None)
    calls = [one for one in file.walk() if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)]
    mapped = [
        each for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr in _MAPS for each in one.args
    ]
    return any(each is function or (isinstance(each, ast.Name) and each.id == name) for each in mapped)


def _renamed(file: SourceFile, node: ast.AST, key: str) -> Edit:
    text = file.segment(node)
    return edit_of(file, node, re.sub(rf"\b{re.escape(key)}\b", _NEW, text, count=1))
