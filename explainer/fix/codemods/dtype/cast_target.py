"""A loss gets its target in the dtype that it takes: `.long()` for class indices, `.float()` for values and probabilities.

Where the target's values say themselves that they are of another dtype (`float64` from NumPy, `.float()`, a column of a float
table) the cast stands there, or where the batch gets them under the target's name; else in the call of the loss, in those of all
losses where only the backward failed. Classes that were seen to have fractions are not cut off, and a mask of 0 and 255 is scaled.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from explainer.fix.clue.blame import crash_frames, is_in_crash
from explainer.fix.clue.crash import message_of
from explainer.fix.clue.raised_loss import raised_loss
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand, put_method, spell, with_method
from explainer.source.file import SourceFile
from explainer.source.loss.loss import Loss, find_losses
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, scope_of
from explainer.source.value.dtype import FLOAT32, FLOAT64, INTEGER, Birth, float64_births, stated_dtype
from explainer.source.value.origin import origins

_EIGHT_BIT = "255"
_AT_LOSS = 1.0
_DEPTH = 3
_AS_FLOATS = "Give values and probabilities as float32: `target.float()`; best where the batch is made"
_ROUNDED = "the loss is computed on numbers of the predictions' own precision"
_DOUBLE = "Found dtype Double but expected Float"
_ONE_EACH = "right where each row names one class: rows of several, or of none, ask for `nn.BCEWithLogitsLoss()`"
_OF_ARRAYS = ("torch.from_numpy", "torch.as_tensor", "torch.tensor")


def propose(context: Context) -> Iterator[Proposal]:
    """Edits for the target of each loss that the traceback names, or of every one where it names only a backward."""
    if not context.has_failed or context.incident.fact("live_fractions") is not None:
        return
    losses = list(find_losses(context.program))
    named = [one for one in losses if _is_named(one, context)]
    beyond = context.incident.fact("live_target_beyond_one")
    if beyond is not None:
        yield from (_scaled(one, str(beyond.value)) for one in named)
        return
    raised = raised_loss(context) if not named else None
    # Where the same call runs other losses too, only floats are as right for them: `long` would cut theirs off.
    named += [raised] if raised is not None and not raised.takes_classes else []
    failing = named or (losses if _is_in_backward(context) else [])
    if not named:
        yield from _of_batch(failing, context)
        yield from _together(failing, context)
    for loss in failing:
        if loss.takes_classes and any("class probabilities" in one.message for one in context.incident.exceptions):
            rows = context.incident.fact("live_hot_rows")
            if rows is None or rows.value == "1 to 1":  # of several classes, or of none: no probabilities
                yield from _probabilities(loss, context.program, is_seen=rows is not None)
        else:
            yield from _proposals(loss, context)
    yield from _one_hot(context)


def _scaled(loss: Loss, beyond: str) -> Proposal:
    """`mask.float() / 255` for a mask that holds 0 and 255; what else is meant by numbers beyond 1 only the author knows."""
    top, _, how = beyond.partition(" ")
    file, target = loss.file, loss.target
    is_mask = (top, how) == (_EIGHT_BIT, "alone")  # a few classes may be 0 and another number by chance
    return Proposal(
        edits=(edit_of(file, target, f"{operand(file, target)}.float() / {top}"),) if is_mask else (),
        culprit=culprit_of(file, loss.call, f"takes probabilities, and gets integers up to {top}"),
        belief=1.6,
        title=f"Give the mask as 0 and 1: `target.float() / {top}`",
        because=f"it holds nothing but 0 and {top}; a cast alone would make targets of {top}, without an error",
    )


def _of_batch(losses: Sequence[Loss], context: Context) -> Iterator[Proposal]:
    """`{"factor": torch.from_numpy(rows)}` in a collate function or dataset, where a loss takes `factor`, as float32."""
    if _DOUBLE not in message_of(context):
        return
    read = {name for one in losses if not one.takes_classes for name in _names(one.target)}
    found = []
    for file in context.program.parsed():
        for node in file.walk():
            pairs = zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ()
            found += [(file, value) for key, value in pairs if getattr(key, "value", None) in read]
    made = [(file, call) for file, value in found if (call := _array_of(value, file, context.program)) is not None]
    if len(made) == 1 == len(found):
        file, call = made[0]
        edits = (put_method(file, call, ".float()"),)
        culprit = culprit_of(file, call, "makes float64 targets of an array")
        yield Proposal(edits=edits, culprit=culprit, belief=1.4, title=_AS_FLOATS, because=_ROUNDED)


def _names(node: ast.expr) -> Iterator[str]:
    """The names and keys that an expression reads: `factor` of `factor.diff(dim=1)` and of `batch["factor"]`."""
    for one in walk(node):
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Constant):
            yield str(one.slice.value)


def _array_of(value: ast.expr, file: SourceFile, program: Program) -> ast.Call | None:
    """The call that makes a tensor of an array, in the dtype that this has."""
    if isinstance(value, ast.Name):
        made = [one.node for one in bounds_of(scope_of(value, file)) if one.name == value.id and not one.fills]
        value = made[0] if len(made) == 1 else value
    if not isinstance(value, ast.Call) or not program.names(file).is_call(value, *_OF_ARRAYS):
        return None
    return value if not any(one.arg == "dtype" for one in value.keywords) else None


def _together(losses: Sequence[Loss], context: Context) -> Iterator[Proposal]:
    """All element-wise losses at once: with one cast alone the backward of the next fails in the same words."""
    edits = [
        (loss, edit)
        for loss in losses
        if not loss.takes_classes
        for one in _proposals(loss, context)
        for edit in one.edits
        if edit.new.startswith(".float()") and one.belief == _AT_LOSS
    ]
    if len(edits) > 1:
        first = edits[0][0]
        why = f"`{first.name}` takes floating-point targets"
        culprit = culprit_of(first.file, first.call, why)
        every = tuple(edit for _, edit in edits)
        yield Proposal(edits=every, culprit=culprit, belief=_AT_LOSS + 0.1, title=_AS_FLOATS, because=_ROUNDED)


def _is_named(loss: Loss, context: Context) -> bool:
    return is_in_crash(loss.call, loss.file, context)


def _is_in_backward(context: Context) -> bool:
    """Whether the failing line of the user's calls `backward`: some losses see the dtype only there."""
    return any("backward" in (frame.code or "") for frame in context.frames[-1:])


def _probabilities(loss: Loss, program: Program, *, is_seen: bool) -> Iterator[Proposal]:
    """Integers in the logits' own shape are one-hot rows: as floats they are the probabilities that the loss takes them for."""
    if isinstance(loss.target, ast.Call) and stated_dtype(loss.target, program.names(loss.file)) == FLOAT32:
        return
    why = f"`{loss.name}` is given a row of integers for each sample, not its class"
    edits = (put_method(loss.file, loss.target, ".float()"),)
    yield Proposal(
        edits=edits, culprit=culprit_of(loss.file, loss.call, why), belief=1.5,
        title="Give one-hot rows as the probabilities that the loss takes them for: `target.float()`",
        because="each row sums to 1, and the gradients are those of the class indices" if is_seen else _ONE_EACH,
        applicability=None if is_seen else "unsafe",
    )  # fmt: skip


def _proposals(loss: Loss, context: Context) -> Iterator[Proposal]:
    program = context.program
    method = ".long()" if loss.takes_classes else ".float()"
    wanted = INTEGER if loss.takes_classes else FLOAT32
    if isinstance(loss.target, ast.Call) and stated_dtype(loss.target, program.names(loss.file)) == wanted:
        return
    value = Value(node=loss.target, file=loss.file)
    made = [one for one in _whole(value, program) if isinstance(one.node, ast.Call)]
    if any(stated_dtype(one.node, program.names(one.file)) == wanted for one in made if isinstance(one.node, ast.Call)):
        return
    if loss.takes_classes:
        yield from _at_float_origin(value, program)
    else:
        yield from (_at_birth(one, program) for one in float64_births(value, program))
        yield from _at_integer_origin(value, program)
    takes = "class indices" if loss.takes_classes else "floating-point targets"
    yield Proposal(
        edits=(put_method(loss.file, loss.target, method),),
        culprit=culprit_of(loss.file, loss.call, f"`{loss.name}` takes {takes}"),
        belief=_AT_LOSS,
        title=None if loss.takes_classes else _AS_FLOATS,
        because=None if loss.takes_classes else _ROUNDED,
    )


def _at_float_origin(value: Value, program: Program) -> Iterator[Proposal]:
    """Class indices that were made floats: `.float()` goes, `dtype=torch.float32` becomes long, a column of a table is cast."""
    for one in _whole(value, program):
        node, file, names = one.node, one.file, program.names(one.file)
        if one.pick is not None or (isinstance(node, ast.Call) and stated_dtype(node, names) == INTEGER):
            continue
        culprit = culprit_of(file, node, "makes class indices floating-point numbers")
        if isinstance(node, ast.Call) and stated_dtype(node, names) in (FLOAT32, FLOAT64):
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("float", "double"):
                end = file.span(node.func)[1]
                edit = edit_of(file, node, f"{file.text[file.span(node)[0] : end - len(node.func.attr)]}long()")
                yield Proposal(edits=(edit,), culprit=culprit, belief=1.6)
                continue
            keyword = next((one for one in node.keywords if one.arg == "dtype"), None)
            is_torch = (names.qualified(node.func) or "").startswith("torch.")
            if keyword is not None and is_torch:
                yield Proposal(
                    edits=(edit_of(file, keyword.value, spell(names, "torch.long")),), culprit=culprit, belief=1.6
                )
        elif _is_tensor(one, program) or any(not each.is_array for each in float64_births(one, program)):
            yield Proposal(edits=(put_method(file, node, ".long()"),), culprit=culprit, belief=1.2)


def _whole(value: Value, program: Program, depth: int = 0) -> Iterator[Value]:
    """The origins of a value; of rows that are cut out, `labels[:split]`, those of all of them."""
    for one in origins(value, program):
        node = one.node
        is_rows = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and one.pick is None
        if is_rows and isinstance(node, ast.Subscript) and depth < _DEPTH:
            yield from list(_whole(replace(one, node=node.value), program, depth + 1)) or [one]
        else:
            yield one


def _at_integer_origin(value: Value, program: Program) -> Iterator[Proposal]:
    """Values that were made integers by a word: `torch.zeros(n, dtype=torch.long)` becomes float32, `.long()` `.float()`."""
    for one in origins(value, program):
        node, names = one.node, program.names(one.file)
        if one.pick is not None or not isinstance(node, ast.Call) or stated_dtype(node, names) != INTEGER:
            continue
        dtype = next((each.value for each in node.keywords if each.arg == "dtype"), None)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("long", "int"):
            edit = edit_of(one.file, node, with_method(one.file, node.func.value, ".float()"))
        elif dtype is not None and (names.qualified(node.func) or "").startswith("torch."):
            edit = edit_of(one.file, dtype, spell(names, "torch.float32"))
        else:
            continue
        culprit = culprit_of(one.file, node, "makes integers of what the loss compares with probabilities or values")
        yield Proposal(edits=(edit,), culprit=culprit, belief=1.3, title=_AS_FLOATS, because=_ROUNDED)


def _is_tensor(value: Value, program: Program) -> bool:
    """Whether an expression is a part of, or made by, something of torch."""
    node: ast.expr = value.node
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call):
            if (program.names(value.file).qualified(node.func) or "").startswith("torch."):
                return True
            node = node.func
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        else:
            return False
    found = list(origins(Value(node=node, file=value.file, arguments=value.arguments), program))
    return bool(found) and all(one.node is not value.node and _is_tensor(one, program) for one in found)


def _at_birth(birth: Birth, program: Program) -> Proposal:
    file, node = birth.value.file, birth.value.node
    spelled = spell(program.names(file), "numpy.float32")
    return Proposal(
        edits=(put_method(file, node, f".astype({spelled})" if birth.is_array else ".float()"),),
        culprit=culprit_of(file, node, "makes float64 targets"),
        belief=1.5,
        title=_AS_FLOATS,
        because=_ROUNDED,
    )


def _one_hot(context: Context) -> Iterator[Proposal]:
    """`F.one_hot(x)` takes integers."""
    for file in context.program.parsed():
        frames = crash_frames(file, context)
        for node in file.walk() if frames else ():
            is_call = isinstance(node, ast.Call) and context.program.names(file).is_call(
                node, "torch.nn.functional.one_hot"
            )
            if not is_call or not isinstance(node, ast.Call) or node.lineno not in frames or not node.args:
                continue
            first = node.args[0]
            if not isinstance(first, ast.Call) or stated_dtype(first, context.program.names(file)) != INTEGER:
                yield Proposal(
                    edits=(put_method(file, node.args[0], ".long()"),),
                    culprit=culprit_of(file, node, "`one_hot` takes integers"),
                    belief=1.0,
                )
