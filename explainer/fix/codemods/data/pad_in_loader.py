"""A loader of token ids of several lengths gets a collate function that pads them: `DataLoader(data, 8, collate_fn=pad_batch)`.

Only where the program says what its padding is, by the `padding_idx` of a table or a comparison of ids with it. What is no row of
tokens goes through torch's default as before; where labels are rows too they get -100, which cross entropy leaves out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.fix.text.rewrite import add_argument, spell
from explainer.source.data.loader import Loader, find_loaders
from explainer.source.file import SourceFile
from explainer.source.loss.loss import find_losses
from explainer.source.name import Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_SHAPES = re.compile(r"stack expects each tensor to be equal size, but got \[(\d+)\] at entry \d+ and \[(\d+)\]")
_LISTS = "each element in list of batch should be of equal size"
_LABELS = re.compile(r"label|target|tag|^y|class", re.IGNORECASE)
_MASK = re.compile(r"mask", re.IGNORECASE)
_PAD = re.compile(r"pad", re.IGNORECASE)
_NAME = "pad_batch"
_CALLS = ("torch.nn.utils.rnn.pad_sequence", "torch.utils.data.default_collate", "torch.as_tensor")
_WHY = "gives rows of several lengths, of which the loader stacks a batch"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all loaders without a collate function, of one data set's class; first with labels as they are, then padded."""
    message, program = message_of(context), context.program
    code = _padding(program)
    loaders = [one for one in find_loaders(program) if one.given("collate_fn", 6) is None]
    if code is None or not loaders or not (_SHAPES.search(message) or _LISTS in message):
        return
    rows = {found for one in loaders if (found := _row(one, program)) is not None}
    if len(rows) != 1 or any(name in file.text for file in program.parsed() for name in ("collate_fn", _NAME)):
        return
    ((file, row),) = rows
    parts = _parts(row)
    tensors = [at for at, (_, value) in enumerate(parts) if not _is_number(value)]
    labels = [at for at in tensors if _is_label(at, parts)]
    where = loaders[0].file
    for padded in dict.fromkeys([tuple(at for at in tensors if at not in labels), tuple(tensors)]):
        if not padded or any(one.file is not where for one in loaders):
            continue
        fills = {at: -100 if at in labels else 0 if _MASK.search(_said(parts[at])) else code for at in padded}
        if -100 in fills.values() and not _leaves_out(program):
            continue
        made = _columns(parts, fills, row, program.names(where), is_list=_LISTS in message)
        text = f"def {_NAME}(rows):\n    return {made}\n\n"
        edits = [insert_before(where, _top(where, loaders[0].call), text)]
        edits += [add_argument(where, one.call, f"collate_fn={_NAME}") for one in loaders]
        belief = 2.0 if len(padded) < len(tensors) or not labels else 1.5
        yield Proposal(edits=tuple(edits), culprit=culprit_of(file, row, _WHY), belief=belief)


def _padding(program: Program) -> int | None:
    """The one number that tables of the program keep for padding, or that ids are compared with to find it."""
    found: set[float | None] = set()
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            if isinstance(node, ast.keyword) and node.arg == "padding_idx":
                found.add(number_of(node.value, names))
            elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.NotEq, ast.Eq)):
                other = node.comparators[0]
                if _PAD.search(dotted_name(other) or ""):
                    found.add(number_of(other, names))
    (code,) = found if len(found) == 1 else (None,)
    return int(code) if code is not None else None


def _leaves_out(program: Program) -> bool:
    """Whether all losses of the program that take classes leave -100 out."""
    losses = [one for one in find_losses(program) if one.takes_classes]
    return bool(losses) and all("ignore_index" not in one.options for one in losses)


def _row(loader: Loader, program: Program) -> tuple[SourceFile, ast.expr] | None:
    """What the data set of a loader gives for a sample: the one tuple or dictionary that its class returns."""
    data, resolver = loader.given("dataset", 0), resolver_of(program)
    for file, owner in resolver.classes_of(Value(data, loader.file)) if data is not None else ():
        found = resolver.method(owner, "__getitem__", file)
        given = [one.value for one in walk(found[1]) if isinstance(one, ast.Return)] if found is not None else []
        if found is not None and len(given) == 1 and isinstance(given[0], (ast.Tuple, ast.Dict)):
            return found[0], given[0]
    return None


def _parts(row: ast.expr) -> list[tuple[str, ast.expr]]:
    """The elements of a sample by their key, or by their place."""
    if isinstance(row, ast.Dict):
        return [(str(getattr(key, "value", "")), one) for key, one in zip(row.keys, row.values, strict=True)]
    return [(str(at), one) for at, one in enumerate(row.elts)] if isinstance(row, ast.Tuple) else []


def _said(part: tuple[str, ast.expr]) -> str:
    return part[0] if not part[0].isdigit() else (dotted_name(part[1]) or "").rpartition(".")[2]


def _is_label(at: int, parts: Sequence[tuple[str, ast.expr]]) -> bool:
    """Whether a part is a label: by what it is called, or as the last of a tuple."""
    return bool(_LABELS.search(_said(parts[at]))) or (parts[at][0].isdigit() and 0 < at == len(parts) - 1)


def _is_number(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(node, ast.Constant) or (
        isinstance(called, ast.Name) and called.id in ("int", "float", "len", "str", "bool", "round")
    )


def _columns(
    parts: Sequence[tuple[str, ast.expr]], fills: Mapping[int, int], row: ast.expr, names: Names, *, is_list: bool
) -> str:
    """What the collate function returns: the columns that are padded, and the others by torch's default."""
    pad, rest, tensor = (spell(names, one) for one in _CALLS)
    is_dict = isinstance(row, ast.Dict)
    made = []
    for at, (name, _) in enumerate(parts):
        item = f'row["{name}"]' if is_dict else f"row[{at}]"
        if at in fills:
            item = f"{tensor}({item})" if is_list else item
            fill = f", padding_value={fills[at]}" if fills[at] else ""
            made.append(f"{pad}([{item} for row in rows], batch_first=True{fill})")
        else:
            made.append(f"{rest}([{item} for row in rows])")
    if not is_dict:
        return ", ".join(made)
    return "{" + ", ".join(f'"{name}": {one}' for (name, _), one in zip(parts, made, strict=True)) + "}"


def _top(file: SourceFile, node: ast.AST) -> ast.stmt:
    """The statement of the module in which a node stands."""
    found = file.statement(node)
    while not isinstance(above := file.parents.get(found), ast.Module) and isinstance(above, ast.AST):
        found = above if isinstance(above, ast.stmt) else file.statement(above)
    return found
