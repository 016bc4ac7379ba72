"""The functions and classes of a program that run some calls, and by which words and expressions it speaks of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from explainer.fix.loop.listener import method_of, registered
from explainer.source.file import SourceFile
from explainer.source.loop.step import Act
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import Value, find_calls
from explainer.source.value.callee import callees_of, leads_to
from explainer.source.value.registry import keys_of
from explainer.source.value.resolve import resolver_of

CALL = ""  # what a function, or an object that can be called, is run by
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_CALLABLE = ("__call__", "forward")
_ROUNDS = 2
_PARTS = re.compile(r"[.:/]")


@dataclass(frozen=True, slots=True)
class Runners:
    """What runs some calls: `entries` has, for each function and class, the methods that run them, `words` their names."""

    program: Program
    entries: Mapping[ast.AST, frozenset[str]]
    words: Mapping[str, frozenset[ast.AST]]

    def of_words(self, words: Iterable[str]) -> frozenset[ast.AST]:
        """Those of which one of the words is the name: `schedule`, `hooks.Schedule`."""
        last = {_PARTS.split(one)[-1] for one in words}
        return frozenset(member for one in last for member in self.words.get(one, ()))

    def of_node(self, node: ast.expr, file: SourceFile) -> frozenset[ast.AST]:
        """Those that the value of an expression may be, an instance of a class included."""
        words = list(words_of(node))
        if words:
            return self.of_words(words)
        resolver = resolver_of(self.program)
        called = node.func if isinstance(node, ast.Call) else node
        found: set[ast.AST] = {one.function for one in callees_of(node, file, self.program)}
        if isinstance(called, (ast.Name, ast.Attribute)):
            named = resolver.find_class(called, file)
            owners = [named] if named is not None else resolver.classes_of(Value(node, file))
            found |= {owner for _, owner in owners}
        return frozenset(found & self.entries.keys())

    def events(self, members: Iterable[ast.AST]) -> frozenset[str]:
        """By what these are run: names of methods, or `CALL`."""
        return frozenset(name for one in members for name in self.entries[one])


def words_of(node: ast.expr) -> list[str]:
    """The words by which an entry of a list names what it stands for: `"schedule"`, `{"type": "Schedule"}`, `dict(type="Schedule")`."""
    if isinstance(node, ast.Dict):
        values: Sequence[ast.expr | None] = [*node.values, *(node.keys if len(node.keys) == 1 else ())]
    elif isinstance(node, ast.Call) and dotted_name(node.func) == "dict":
        values = [one.value for one in node.keywords]
    else:
        values = [node]
    return [one.value for one in values if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def runners_of(acts: Sequence[Act], program: Program) -> Runners:
    """What runs some calls of a training step, directly or through functions that it calls."""
    found: dict[ast.AST, SourceFile] = {}
    for act in acts:
        found |= dict.fromkeys(_around(act.call, act.file), act.file)
    calls = list(find_calls(program)) if found else []
    for _ in range(_ROUNDS):
        names = {one.name for one in found if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))}
        for file, call in calls:
            name = (dotted_name(call.func) or "").rpartition(".")[2]
            if name in names and any(leads_to(act.statement, call, file, program) for act in acts):
                found |= dict.fromkeys(_around(call, file), file)
    entries: dict[ast.AST, set[str]] = {one: {CALL} for one in found}
    for one, file in found.items():
        owner = file.parents.get(one)
        if isinstance(owner, ast.ClassDef) and not isinstance(one, ast.Lambda):
            assert isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))
            entries.setdefault(owner, set()).add(CALL if one.name in _CALLABLE else one.name)
    _add_derived(entries, program)
    words: dict[str, set[ast.AST]] = {}
    for member in entries:
        for word in _names(member, program):
            words.setdefault(word, set()).add(member)
    return Runners(
        program,
        {one: frozenset(names) for one, names in entries.items()},
        {word: frozenset(members) for word, members in words.items()},
    )


def _around(node: ast.AST, file: SourceFile) -> list[ast.AST]:
    """The functions around a node: a factory runs what the function runs that it makes."""
    found = []
    above = file.enclosing(node, *_FUNCTIONS)
    while above is not None:
        found.append(above)
        above = file.enclosing(above, *_FUNCTIONS)
    return found


def _add_derived(entries: dict[ast.AST, set[str]], program: Program) -> None:
    """Classes that inherit a method which runs the calls."""
    classes = [one for file in program.parsed() for one in program.names(file).classes.values()]
    for _ in range(_ROUNDS):
        known = {one.name: names for one, names in entries.items() if isinstance(one, ast.ClassDef)}
        for owner in classes:
            for base in owner.bases:
                inherited = known.get((dotted_name(base) or "").rpartition(".")[2], set())
                own = {one for one in inherited if method_of(owner, one or _CALLABLE[0]) is None}
                if own and owner.name not in known:
                    entries.setdefault(owner, set()).update(own)


def _names(member: ast.AST, program: Program) -> set[str]:
    if not isinstance(member, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return set()
    definition: ast.ClassDef | Function = member
    return {definition.name, *keys_of(definition, program), *registered({definition.name}, program)}
