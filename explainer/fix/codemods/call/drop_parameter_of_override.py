"""Takes out of an overriding method the parameter that its base class has lost: Lightning 1's `optimizer_idx` of `optimizer_step`.

The library gives what the base takes, so each value behind the old parameter would land one place too early. What the table
of the libraries' interfaces does not know stays. A call of the base within the override loses the parameter too. Where the body
reads the index of the optimizer, it is 0 in the methods that only automatic optimization calls: Lightning 2 steps one optimizer there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from explainer.catalog.interface import distributions, is_of
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.fix.text.base_call import calls_of_base
from explainer.model.incident import Frame
from explainer.model.interface import Change
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.tree import walk

_BASES = ("LightningModule", "Callback")
_INDEX = re.compile(r"_?opt(?:imi[sz]er)?_?(?:i|id|idx|index|nb|num)")
_INDEX_NAMES = ("optimizer_idx", "opt_idx")
_CLOSURE = re.compile(r"closure hasn't been executed")
_STEP = "optimizer_step"
# `on_before_optimizer_step` and `backward` are called under manual optimization too, for any of several optimizers.
_OF_ONE_OPTIMIZER = (_STEP, "optimizer_zero_grad", "configure_gradient_clipping", "lr_scheduler_step")


class _Override(NamedTuple):
    """A method of the program, and which of its parameters its base class has lost."""

    file: SourceFile
    node: Function
    lost: dict[str, Change]


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the method that the message names, or whose call of its base does not fit."""
    caller = _caller(context)
    if caller is None:
        return
    for file, node in _methods(context, caller):
        lost = _lost(node, context)
        if lost and _is_called_by(lost, caller) and len(lost) >= _missing(context):
            yield _proposal(_Override(file, node, lost))


def _caller(context: Context) -> Frame | None:
    """The frame that made the call which does not fit."""
    records = context.incident.exceptions
    return records[-1].frames[-1] if records and records[-1].frames else None


def _methods(context: Context, caller: Frame) -> Iterator[tuple[SourceFile, Function]]:
    """The overriding methods that the failure may be about."""
    message = context.incident.exceptions[-1].message
    parts = [part for part in str(context.fields.get("callee", "")).split(".") if part != "<locals>"]
    if _CLOSURE.search(message):
        yield from context.program.functions_named(_STEP)
    elif len(parts) > 1:
        found = context.program.find_class(parts[-2])
        for file, node in context.program.functions_named(parts[-1]):
            if (found is not None and node in found[1].body) or (
                found is None and caller.library is None and caller.line in _lines(node)
            ):
                yield file, node


def _missing(context: Context) -> int:
    """How many arguments the call lacks, as far as the message counts them."""
    count = str(context.fields.get("count", ""))
    return int(count) if count.isdigit() else 0


def _lines(node: Function) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _lost(node: Function, context: Context) -> dict[str, Change]:
    """The parameters that a release took from the base class's method, by their names in the override."""
    found: dict[str, Change] = {}
    for one in node.args.args:
        names = [one.arg.lstrip("_"), *(_INDEX_NAMES if _INDEX.fullmatch(one.arg) else ())]
        for place in (f"{base}.{node.name}" for base in _BASES):
            known = (change for name in names for change in context.changes(place, name))
            change = next((each for each in known if _is_gone(each, context)), None)
            if change is not None:
                found.setdefault(one.arg, change)
    return {name: change for name, change in found.items() if not _may_stay(node, name, found)}


def _may_stay(node: Function, name: str, lost: dict[str, Change]) -> bool:
    """Whether a parameter that the body reads keeps its default, with nothing behind it that is still passed."""
    names = [one.arg for one in node.args.args]
    at = names.index(name)
    is_last = all(one in lost for one in names[at:]) and at >= len(names) - len(node.args.defaults)
    return is_last and _is_used(node, name)


def _is_gone(change: Change, context: Context) -> bool:
    """Whether a parameter went without another in its place, in the installed release where that is known."""
    if change.kind != "argument" or change.removed is None or change.new is not None:
        return False
    found = [context.version(name) for name in distributions(change.library)]
    release = next((_numbers(one) for one in found if one), ())
    return not release or release >= _numbers(change.removed)


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(one) for one in release.split(".")[:2] if one.isdigit())


def _is_called_by(lost: dict[str, Change], caller: Frame) -> bool:
    """Whether the call that fails is the library's, or the program's own call of the library's method."""
    return caller.library is None or any(is_of(one.library, caller.library) for one in lost.values())


def _proposal(found: _Override) -> Proposal:
    file, node, lost = found
    used = [name for name in lost if _is_used(node, name)]
    kept = [name for name in used if not _INDEX.fullmatch(name) or node.name not in _OF_ONE_OPTIMIZER]
    edits = None if kept else _edits(found, used)
    names = ", ".join(f"`{name}`" for name in lost)
    change = next(iter(lost.values()))
    return Proposal(
        edits=tuple(edits or ()),
        culprit=culprit_of(
            file, node, f"takes {names}, which {change.library} passes to it no more since {change.removed}"
        ),
        belief=_BELIEF,
        applicability=None if not used else "unsafe",
        because=_INDEX_IS_ZERO if used and edits else None,
        title=f"Leave out what {change.library} {change.removed} no longer passes: {change.write}",
    )


_BELIEF = 3.0  # the base gives one value fewer: with the old parameter the call can only go wrong
_INDEX_IS_ZERO = "Lightning 2 steps one optimizer by itself, whose index was 0; several are for manual optimization"


def _is_used(node: Function, name: str) -> bool:
    """Whether the body reads a parameter, but for handing it on to the base class."""
    handed = {each for call in calls_of_base(node) for each in _values(call)}
    return any(
        isinstance(one, ast.Name) and one.id == name and one not in handed
        for statement in node.body
        for one in walk(statement)
    )


def _values(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(one.value for one in call.keywords)]


def _edits(found: _Override, used: Sequence[str]) -> list[Edit] | None:
    """The edits that take the parameters out; None where the text has another form."""
    file, node, lost = found
    arguments = node.args.args
    spans = _spans(file, node)
    gone = [at for at, one in enumerate(arguments) if one.arg in lost]
    edits = _without(file, spans, gone)
    for call in calls_of_base(node):
        each = _call_without(file, call, [one - 1 for one in gone], lost)
        if edits is None or each is None:
            return None
        edits += each
    if edits is not None and used:
        edits.append(insert_before(file, _first(node), "\n".join(f"{name} = 0" for name in used)))
    return edits


def _spans(file: SourceFile, node: Function) -> list[tuple[int, int]]:
    """Where each positional parameter stands, with its annotation and its default."""
    arguments = node.args.args
    defaults = [None] * (len(arguments) - len(node.args.defaults)) + list(node.args.defaults)
    return [
        (file.span(one)[0], file.span(default or one)[1]) for one, default in zip(arguments, defaults, strict=False)
    ]


def _without(file: SourceFile, spans: Sequence[tuple[int, int]], gone: Sequence[int]) -> list[Edit] | None:
    """The edits that take parts out of a list, each with the comma before it; None where the first would go."""
    if 0 in gone:
        return None
    return [Edit(file=file.path, start=spans[at - 1][1], end=spans[at][1], new="") for at in gone]


def _call_without(
    file: SourceFile, call: ast.Call, places: Sequence[int], lost: dict[str, Change]
) -> list[Edit] | None:
    """The edits of a call of the base; None where it hands over a value of its own in the place of what is lost."""
    if any(isinstance(one, ast.Starred) for one in call.args):
        return None
    values = _values(call)
    spans = [file.span(one) for one in call.args]
    spans += [(file.offset(one.lineno, one.col_offset), file.span(one.value)[1]) for one in call.keywords]
    gone = [at for at, one in enumerate(values) if isinstance(one, ast.Name) and one.id in lost]
    gone += [at for at in places if at < len(call.args) and isinstance(call.args[at], ast.Constant)]
    gone += [at for at, one in enumerate(call.keywords, len(call.args)) if one.arg in lost]
    if any(at < len(call.args) and at not in gone for at in places):
        return None
    return _without(file, spans, sorted(set(gone)))


def _first(node: Function) -> ast.stmt:
    """The first statement behind a docstring."""
    has_text = len(node.body) > 1 and ast.get_docstring(node, clean=False) is not None
    return node.body[1] if has_text else node.body[0]
