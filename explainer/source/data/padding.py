"""Masks of padding: whether one is true where a token stands or where there is none, by how the program makes it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, scope_of
from explainer.source.value.origin import KEEP, origins

_DEPTH = 8
_HIDE = frozenset({"key_padding_mask", "src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask"})
_LOW = re.compile(r"-\s*(?:float\()?[\"']?(?:math\.|torch\.|np\.)?inf|[\"']-inf|-\s*1e\d|finfo")
_FUSED = "torch.nn.functional.scaled_dot_product_attention"
_LENGTHS = re.compile(
    r"lengths?\b|lens\b|(?<![a-z])(?:x|src|tgt|seq|text|input|valid|token|audio)_?len\b|n_tokens", re.IGNORECASE
)
_PAD = re.compile(r"pad", re.IGNORECASE)
_IDS = re.compile(r"ids?\b|token|seq|word|char|code|src|tgt|text|input|mask", re.IGNORECASE)
_WRAPPED = KEEP | {"bool", "logical_not", "expand_as", "repeat_interleave"}
_FILLED = (("torch.zeros", "torch.zeros_like"), ("torch.ones", "torch.ones_like"))  # with 0, with 1
_PADDED = "torch.nn.utils.rnn.pad_sequence"
_NUMBERS = frozenset({"float", "unsqueeze", "to", "type_as", "expand_as", "half", "double", "int", "long"})
_WORDS = {"ne": ast.NotEq, "eq": ast.Eq, "lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE}
_BEFORE, _BEHIND = (ast.Lt, ast.LtE), (ast.Gt, ast.GtE)


def shows_tokens(value: Value, program: Program, depth: int = 0) -> bool | None:
    """Whether a mask is true on tokens; False where it is true on padding, None where the program does not say.

    Read of comparisons: positions with lengths, `arange(n) < lengths`, and ids with the number of the padding, `ids != pad_id`.
    """
    if depth > _DEPTH:
        return None
    made = [one for one in _made(value, program) if not isinstance(one.node, ast.Constant)]  # what is written into it
    found = {_sense(one, program, depth + 1) for one in made}
    return found.pop() if len(found) == 1 else None


def inverted_masks(call: ast.Call, file: SourceFile, program: Program) -> Iterator[tuple[ast.expr, bool]]:
    """The masks of a call that mean the reverse of what it takes, and whether they are true on the tokens."""
    is_fused = program.names(file).is_call(call, _FUSED)
    masks = [one.value for one in call.keywords if one.arg in _HIDE or (is_fused and one.arg == "attn_mask")]
    is_filled = isinstance(call.func, ast.Attribute) and call.func.attr in ("masked_fill", "masked_fill_")
    if is_filled and len(call.args) == 2 and _LOW.search(file.segment(call.args[1])):
        masks.append(call.args[0])
    for one in masks:
        is_shown = shows_tokens(Value(one, file), program)
        is_shown = _weighs(one, file) if is_shown is None else is_shown
        if is_shown is not None and is_shown != is_fused:
            yield one, is_shown


def _weighs(mask: ast.expr, file: SourceFile) -> bool | None:
    """Whether the function of a mask multiplies by it as well, to keep what it is true on: `(h * mask.unsqueeze(-1)).sum(1)`."""
    name, scope = dotted_name(mask), scope_of(mask, file)
    if name is None:
        return None
    kept: dict[str, bool] = {name: True}
    for one in walk(scope):
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            held = _kept(one.value, kept)
            if held is not None and one.targets[0].id != name:
                kept[one.targets[0].id] = held
    products = [one for one in walk(scope) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult)]
    found = {held for one in products for side in (one.left, one.right) if (held := _kept(side, kept)) is not None}
    return found.pop() if len(found) == 1 else None


def _kept(node: ast.expr, kept: Mapping[str, bool]) -> bool | None:
    """Whether an expression is a mask as it is, with axes more or as numbers (True), or its opposite; None where it is neither."""
    is_flipped = False
    while True:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            node, is_flipped = node.operand, not is_flipped
        elif isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _NUMBERS:
            node = node.func.value
        else:
            break
    held = kept.get(dotted_name(node) or "")
    return None if held is None else held != is_flipped


def _made(value: Value, program: Program) -> Iterator[Value]:
    """What makes a mask, through names; a name or key that nothing gives a value is looked up among the keys of the batches."""
    for one in list(origins(value, program)) or [value]:
        name = dotted_name(one.node) if one.pick is None else None
        if isinstance(one.node, ast.Subscript) and isinstance(one.node.slice, ast.Constant):
            name = str(one.node.slice.value)  # `batch["mask"]`
        yield from ((_entries(name, program) or _only_mask(name, program)) if name is not None else (one,))


def _entries(name: str, program: Program) -> list[Value]:
    """What dictionaries of the program hold under a name: `{"mask": ids != 0}`."""
    return [one for key, held in _held(program) if key == name for one in origins(held, program)]


def _only_mask(name: str, program: Program) -> list[Value]:
    """The one mask that batches of the program have, for a mask that comes through more layers than are followed."""
    masks = {key for key, _ in _held(program) if key.endswith("mask")} if name.endswith("mask") else set()
    return _entries(masks.pop(), program) if len(masks) == 1 else []


def _held(program: Program) -> Iterator[tuple[str, Value]]:
    """The values of the program's dictionaries by their keys."""
    for file in program.parsed():
        for node in file.walk():
            for key, held in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ():
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, Value(held, file)


def _sense(value: Value, program: Program, depth: int) -> bool | None:
    node, is_flipped = value.node, False
    while not isinstance(node, ast.Compare):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Invert, ast.Not)):
            node, is_flipped = node.operand, not is_flipped
        elif isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _WRAPPED:
            is_flipped ^= node.func.attr == "logical_not"
            node = node.func.value
        else:
            break
    if node is not value.node and dotted_name(node):
        inner = shows_tokens(replace(value, node=node), program, depth)
        return inner if inner is None else inner != is_flipped
    sense = _of_comparison(replace(value, node=node), program, depth)
    sense = _of_writes(replace(value, node=node), program) if sense is None else sense
    return sense if sense is None else sense != is_flipped


def _of_writes(value: Value, program: Program) -> bool | None:
    """The sense of a mask that is made of zeros and ones: `mask[row, : len(ids)] = 1` on zeros, padded rows of ones."""
    node, file = value.node, value.file
    names = program.names(file)
    if not isinstance(node, ast.Call):
        return None
    if names.is_call(node, _PADDED):
        rows = list(walk(node.args[0])) if node.args else []
        return True if any(names.is_call(one, "torch.ones", "torch.ones_like") for one in rows) else None
    filled = next((at for at, made in enumerate(_FILLED) if names.is_call(node, *made)), None)
    statement = file.statement(node)
    name = dotted_name(statement.targets[0]) if isinstance(statement, ast.Assign) else None
    found = set()
    for one in walk(scope_of(node, file)) if filled is not None and name is not None else ():
        place = one.targets[0] if isinstance(one, ast.Assign) else None
        if not isinstance(one, ast.Assign) or not isinstance(place, ast.Subscript) or dotted_name(place.value) != name:
            continue
        written = getattr(one.value, "value", None)
        parts = place.slice.elts if isinstance(place.slice, ast.Tuple) else [place.slice]
        cut = parts[-1]
        if not isinstance(cut, ast.Slice) or written not in (0, 1) or written == filled:
            return None
        is_before = cut.lower is None and cut.upper is not None
        is_behind = cut.lower is not None and cut.upper is None
        found.add(bool(written) == is_before if is_before or is_behind else None)
    return found.pop() if len(found) == 1 else None


def _of_comparison(value: Value, program: Program, depth: int) -> bool | None:
    node, file, names = value.node, value.file, program.names(value.file)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        operator, sides = _WORDS.get(node.func.attr), (node.func.value, node.args[0])
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        operator, sides = type(node.ops[0]), (node.left, node.comparators[0])
    else:
        return None
    left, right = (_is_position(one, names) for one in sides)
    if left != right and operator in (*_BEFORE, *_BEHIND):
        other = sides[1] if left else sides[0]
        is_of_lengths = _LENGTHS.search(file.segment(other)) is not None
        return (operator in _BEFORE) == left if is_of_lengths else None
    if operator not in (ast.NotEq, ast.Eq):
        return None
    is_other = operator is ast.NotEq
    of_mask = shows_tokens(replace(value, node=sides[0]), program, depth) if _is_zero(sides[1]) else None
    if of_mask is not None:  # `mask == 0` of a mask
        return of_mask is is_other
    is_ids = _PAD.search(dotted_name(sides[1]) or "") or (_is_zero(sides[1]) and _IDS.search(file.segment(sides[0])))
    return is_other if is_ids else None


def _is_position(node: ast.expr, names: Names) -> bool:
    """`torch.arange(n)`, also with an axis more."""
    while not (isinstance(node, ast.Call) and names.is_call(node, "torch.arange")):
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return False
    return True


def _is_zero(node: ast.expr) -> bool:
    """0, the number of the padding where nothing is said of it."""
    return isinstance(node, ast.Constant) and node.value == 0 and not isinstance(node.value, bool)
