"""Writes an argument under the name that the installed release has, where it is written: in Python or in a configuration file.

What the name became is read from the table of the libraries' interfaces. The value moves along, also from a trainer to the
configuration that it is given. An argument that went without a successor, and of which the table says that nothing is to be
written, is taken out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of
from explainer.fix.setting.edit import add_key, remove, rename_key, set_value
from explainer.fix.text.rewrite import add_argument, remove_argument
from explainer.model.interface import Change
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.setting.flow import members_behind
from explainer.source.setting.python import read_python
from explainer.source.setting.setting import COMMAND, ITEM, KEYWORD, Setting
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, scope_of
from explainer.source.value.resolve import resolver_of

_ARGUMENT = re.compile(r'(\w+)=("[^"]*"|[^,\s]+)')


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each place in which the argument that the message names is written."""
    names = _names(context)
    for name in names:
        for owner in _owners(context):
            found = [one for one in context.changes(owner, name) if one.kind == "argument" and one.old == name]
            if found:
                yield from _proposals(context, name, owner, found[0])
                return


def _names(context: Context) -> list[str]:
    """The arguments that the message complains of."""
    one = context.fields.get("argument")
    many = re.findall(r"['\"](?:--)?(\w+)", str(context.fields.get("arguments", "")))
    return [str(one)] if one else many


def _owners(context: Context) -> list[str]:
    """The classes and functions that the message, or else the failing line, names."""
    callee = str(context.fields.get("callee", ""))
    parts = [part for part in callee.split(".") if part != "<locals>"]
    if parts == ["__init__"] or not callee:
        lines = [frame.code or "" for record in context.incident.exceptions for frame in record.frames]
        found = [name for line in reversed(lines) for name in re.findall(r"([A-Z]\w{2,80})\(", line[:2000])]
        return [*dict.fromkeys(found), "TrainingArguments"]
    return [parts[-2]] if parts[-1] == "__init__" and len(parts) > 1 else [".".join(parts[-2:]), parts[-1]]


def _proposals(context: Context, name: str, owner: str, change: Change) -> Iterator[Proposal]:
    if change.new is not None and change.new_place[0] != change.of:
        yield from _moved(context, name, change)
        return
    places = list(_places(context, name, owner))
    best = max((belief for _, belief in places), default=0.0)
    for setting, belief in places:
        if belief < best and best > 1.0:  # a place that certainly reaches the call leaves no room for others
            continue
        edits = _edits(setting, change)
        if edits:
            yield Proposal(
                edits=edits,
                culprit=culprit_at(setting.file, (setting.key or setting.span)[:1] + setting.span[1:], _why(change)),
                belief=belief,
                title=_title(setting, change),
                because=change.note or f"it is what {_release(change)} takes",
            )


def _moved(context: Context, name: str, change: Change) -> Iterator[Proposal]:
    """`DPOTrainer(args=config, beta=0.1)` becomes `DPOTrainer(args=config)` where `config` is made with `beta=0.1`."""
    owner, new = change.new_place
    for file, statement in raised_at(context):
        for call in walk(statement):
            given = {one.arg: one for one in call.keywords} if isinstance(call, ast.Call) else {}
            if name not in given or not isinstance(call, ast.Call):
                continue
            config = given.get("args") or given.get("config")
            made = list(resolver_of(context.program).constructors_of(Value(config.value, file))) if config else []
            node = made[0].node if len(made) == 1 else None
            if not isinstance(node, ast.Call) or (dotted_name(node.func) or "").rpartition(".")[2] != owner:
                continue
            where, value = made[0].file, given[name].value
            if any(one.arg == new for one in node.keywords) or not _is_known_at(value, file, node, where):
                continue
            edits = (
                remove_argument(file, call, given[name]),
                add_argument(where, node, f"{new}={file.segment(value)}"),
            )
            yield Proposal(
                edits=edits,
                culprit=culprit_of(file, given[name].value, f"gives an argument that `{owner}` takes now"),
                belief=2.0,
                title=f"Give `{new}` to `{owner}`",
                because=change.note or f"it is what {_release(change)} takes",
            )


def _is_known_at(value: ast.expr, file: SourceFile, node: ast.Call, where: SourceFile) -> bool:
    """Whether what a value reads is bound already where another call of the same function, or of the same file, stands."""
    read = {one.id for one in walk(value) if isinstance(one, ast.Name)}
    scope = scope_of(value, file)
    if not read:
        return True
    if where is not file or scope_of(node, where) is not scope:
        return False
    at = where.statement(node)
    own = {bound.name for bound in bounds_of(scope) if getattr(bound.statement, "lineno", 0) >= at.lineno}
    return not read & own


def _edits(setting: Setting, change: Change) -> tuple[Edit, ...]:
    """What writes a setting as the release takes it; nothing where that is more than a name and a value."""
    template = _template(setting, change)
    if template and setting.key is not None and setting.kind == KEYWORD:
        new = template.replace("@", setting.raw)
        return (Edit(file=setting.file.path, start=setting.key[0], end=setting.span[1], new=new),)
    if template:
        return _of_key(setting, template)
    if template is None and change.new is not None:
        owner, new = change.new_place
        return _known([rename_key(setting, new)]) if owner == change.of else ()
    return _known([remove(setting)]) if template == "" or change.write.startswith("nothing") else ()


def _of_key(setting: Setting, template: str) -> tuple[Edit, ...]:
    """`gpus: 0` of a file becomes `accelerator: cpu`: the first argument takes the place, the others stand behind it."""
    arguments = dict(_ARGUMENT.findall(template))
    first = next((name for name, value in arguments.items() if value == "@"), next(iter(arguments)))
    value = arguments.pop(first)
    found = [rename_key(setting, first)]
    if value != "@":  # else the value moves along
        found.append(set_value(setting, ast.literal_eval(value)))
    return _known([*found, *(add_key(setting, one, ast.literal_eval(told)) for one, told in arguments.items())])


def _known(edits: list[Edit | str]) -> tuple[Edit, ...]:
    """The edits, or none at all where one of them cannot be made."""
    return tuple(one for one in edits if isinstance(one, Edit)) if all(isinstance(one, Edit) for one in edits) else ()


def _title(setting: Setting, change: Change) -> str:
    new = change.new if (written := _written(setting, change)) is None else written
    return f"Write `{new}` for `{change.old}`" if new else f"Take `{change.old}` out"


def _written(setting: Setting, change: Change) -> str | None:
    """The arguments that stand for a setting with its value; None where the value does not decide."""
    template = _template(setting, change)
    return None if template is None else template.replace("@", setting.raw)


def _template(setting: Setting, change: Change) -> str | None:
    """What the table writes for a value: `devices=@`; "" for nothing, None where the value does not decide."""
    for one in change.becomes:
        values, _, new = one.partition(" ->")
        if setting.raw.strip("\"'") in values.split("|") or values == "*":
            return new.strip()
    return None


def _why(change: Change) -> str:
    when = f"since {change.library} {change.removed}" if change.removed else f"in {change.library}"
    return (
        f"gives an argument that is called `{change.new}` {when}"
        if change.new
        else f"gives an argument that is gone {when}"
    )


def _release(change: Change) -> str:
    release = change.added or change.removed
    return f"{change.library} {release} and later" if release else change.library


def _places(context: Context, name: str, owner: str) -> Iterator[tuple[Setting, float]]:
    """Where the argument is given: in calls of the owner, through `**options`, in files and scripts."""
    program = context.program
    for file in program.parsed():
        names = program.names(file)
        for one in read_python(file):
            called = (one.owner or "").rpartition(".")[2]
            if one.name == name and one.kind == KEYWORD and called == owner.rpartition(".")[2]:
                yield one, 2.0
            elif one.name == name and one.kind in (KEYWORD, ITEM):
                yield one, 0.2
        for call, spread in _spreads(file):
            if (names.qualified(call.func) or "").rpartition(".")[2] == owner.rpartition(".")[2]:
                yield from ((one, 2.2) for one in members_behind(spread, name, file, program))
    for document in program.documents(name):
        yield from ((one, 0.8 if one.kind == COMMAND else 1.0) for one in document.settings if one.name == name)


def _spreads(file: SourceFile) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Every call with `**mapping`, and the mapping."""
    for node in file.walk():
        if isinstance(node, ast.Call):
            yield from ((node, one.value) for one in node.keywords if one.arg is None)
