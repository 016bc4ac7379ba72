"""The numbers by which a program sorts its hooks: `priority = 30` of a class, `register(hook, priority=30)`, an entry of a file."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from explainer.fix.loop.hook_list import TOLD
from explainer.fix.loop.hook_runner import Runners
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.setting.setting import JSON, TOML, YAML
from explainer.source.text import TextFile
from explainer.source.value.binding import find_calls
from explainer.source.value.resolve import resolver_of

_BASES = 6


@dataclass(frozen=True, slots=True)
class HookNumber:
    """A number that tells hooks their order, the word for it, and where it is written: perhaps in a base, for others too."""

    word: str
    value: float
    file: TextFile
    span: tuple[int, int]
    is_inherited: bool = False

    def moved(self, value: float) -> Edit:
        """The edit that writes another number in its place."""
        return Edit(file=self.file.path, start=self.span[0], end=self.span[1], new=f"{value:g}")


def numbers_of(runners: Runners, event: str, program: Program) -> list[HookNumber]:
    """Where it is written when hooks that run some calls at one event are called; those of entries before those of classes."""
    members = {one for one, events in runners.entries.items() if event in events}
    given = [*_of_calls(members, runners, program), *_of_entries(members, runners, program)]
    return list(dict.fromkeys(given)) or list(dict.fromkeys(_of_members(members, program)))


def number_behind(number: float, others: set[float], *, is_above: bool) -> float:
    """The number next to another one, above it or below, that no hook has: 41 for 40, or 40.5 where there is a 41."""
    sign = 1 if is_above else -1
    rest = [one for one in others if sign * (one - number) > 0]
    nearest = min(rest, key=lambda one: abs(one - number), default=math.inf)
    step = 1.0 if abs(nearest - number) > 1 else abs(nearest - number) / 2
    return number + sign * step


def numbers_told(word: str, program: Program) -> set[float]:
    """Every number that a program writes for a word."""
    found: set[float] = set()
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.ClassDef):
                found |= {one.value for one in _own(node, file) if one.word == word}
            elif isinstance(node, ast.keyword) and (node.arg or "").lower() == word:
                value = _value(node.value)
                found |= {value} if value is not None else set()
    for document in program.documents():
        found |= {float(one.value) for one in document.named(word) if isinstance(one.value, (int, float))}
    return found


def _of_members(members: set[ast.AST], program: Program) -> Iterator[HookNumber]:
    """What a class, or a decorator, says of when it is called; of a class without it what its base says."""
    for file in program.parsed():
        for node in file.walk():
            if node not in members:
                continue
            for one in getattr(node, "decorator_list", ()):
                yield from _keywords(one, file)
            if isinstance(node, ast.ClassDef):
                yield from _of_class(node, file, program, 0)


def _of_class(owner: ast.ClassDef, file: SourceFile, program: Program, depth: int) -> Iterator[HookNumber]:
    own = list(_own(owner, file))
    yield from own
    for base in owner.bases if not own and depth < _BASES else ():
        above = resolver_of(program).find_class(base, file)
        if above is not None:
            found = _of_class(above[1], above[0], program, depth + 1)
            yield from (replace(one, is_inherited=True) for one in found)


def _own(owner: ast.ClassDef, file: SourceFile) -> Iterator[HookNumber]:
    for one in owner.body:
        target = one.targets[0] if isinstance(one, ast.Assign) else getattr(one, "target", None)
        word = (dotted_name(target) or "").lower()
        if isinstance(one, (ast.Assign, ast.AnnAssign)) and one.value is not None and word in TOLD:
            value = _value(one.value)
            if value is not None:
                yield HookNumber(word, value, file, file.span(one.value))


def _of_calls(members: set[ast.AST], runners: Runners, program: Program) -> Iterator[HookNumber]:
    """`Schedule(priority=30)`, `runner.register(Schedule(), priority=30)`, `dict(type="Schedule", priority=30)`."""
    for file, call in find_calls(program):
        found = list(_keywords(call, file))
        if found and any(members & runners.of_node(one, file) for one in (call, *call.args)):
            yield from found
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Dict) and members & runners.of_node(node, file):
                for key, value in zip(node.keys, node.values, strict=True):
                    word = str(key.value).lower() if isinstance(key, ast.Constant) else ""
                    number = _value(value) if word in TOLD else None
                    if number is not None:
                        yield HookNumber(word, number, file, file.span(value))


def _of_entries(members: set[ast.AST], runners: Runners, program: Program) -> Iterator[HookNumber]:
    """`{name: schedule, priority: 30}` of a configuration file, and `schedule: {priority: 30}`."""
    for document in program.documents():
        for one in document.settings if document.kind in (YAML, JSON, TOML) else ():
            if one.name.lower() not in TOLD or not isinstance(one.value, (int, float)) or isinstance(one.value, bool):
                continue
            beside = [each.value for each in document.settings if each.path[:-1] == one.path[:-1]]
            words = [each for each in (*beside, *one.path[-2:-1]) if isinstance(each, str)]
            if members & runners.of_words(words):
                yield HookNumber(one.name.lower(), float(one.value), document.file, one.span)


def _keywords(node: ast.AST, file: SourceFile) -> Iterator[HookNumber]:
    for one in node.keywords if isinstance(node, ast.Call) else ():
        value = _value(one.value) if one.arg in TOLD else None
        if value is not None and one.arg is not None:
            yield HookNumber(one.arg, value, file, file.span(one.value))


def _value(node: ast.expr) -> float | None:
    sign = -1 if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else 1
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    is_number = isinstance(inner, ast.Constant) and isinstance(inner.value, (int, float))
    return sign * float(inner.value) if is_number and not isinstance(inner.value, bool) else None  # type: ignore[attr-defined]
