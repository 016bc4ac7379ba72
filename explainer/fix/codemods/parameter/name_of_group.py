"""A parameter group whose filter matches no name is given the name of the part that no group has.

`{"prefix": "encoder."}` of a model whose parts are `stem`, `trunk` and `head`: the group is empty, and `trunk` belongs to no
optimizer. Only where one group is empty and one whole part is left is it said which name is meant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of
from explainer.model.finding import Culprit
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk

_MATCHES = frozenset({"startswith", "match", "fullmatch", "fnmatch"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A name that a group asks for: where it is written, and the edit that writes another beginning."""

    value: str
    culprit: Culprit
    path: str
    start: int

    @property
    def head(self) -> str:
        """The part of the model that it names."""
        return self.value.partition(".")[0]


def propose(context: Context) -> Iterator[Proposal]:
    """The edit for the one name that matches nothing, where one whole part of the model is in no group."""
    facts = {one.name: one.value for one in context.incident.facts}
    parts = facts.get("live_parts", "").split()
    whole = facts.get("live_parts_without_optimizer", "").split()
    if len(whole) != 1 or facts.get("live_empty_groups") != "1":
        return
    names = list(_names(context.program))
    wrong = [one for one in names if one.head and one.head not in parts]
    if (
        len(wrong) != 1
        or any(one.head == whole[0] for one in names)
        or wrong[0].value not in (wrong[0].head, f"{wrong[0].head}.")
    ):
        return
    one = wrong[0]
    yield Proposal(
        edits=(Edit(file=one.path, start=one.start, end=one.start + len(one.head), new=whole[0]),),
        culprit=one.culprit,
        belief=2.5,
        applicability="unsafe",
        because=f"the one group without parameters, and `{whole[0]}` the one part of the model that is in no group",
        title=f"Name the part that is there: `{whole[0]}` for `{one.head}`",
    )


def _names(program: Program) -> Iterator[Name]:
    """The names that the groups of the program ask for, written in it or in its configuration."""
    seen: set[tuple[str, int]] = set()
    for file, function, word in _asked(program):
        if isinstance(word, ast.Constant):
            found = [_in_code(word, file)]
        else:
            key = _key(dotted_name(word) or "", function)
            found = [*_in_settings(key, program), *_in_dicts(key, program)] if key else []
        for one in found:
            if (one.path, one.start) not in seen:
                seen.add((one.path, one.start))
                yield one


def _asked(program: Program) -> Iterator[tuple[SourceFile, Function, ast.expr]]:
    """What the names of parameters are compared with in a comprehension over `named_parameters()`."""
    for file, function in program.functions():
        for node in walk(function):
            if not isinstance(node, (ast.ListComp, ast.GeneratorExp)):
                continue
            for one in node.generators:
                if any(getattr(each, "attr", "") == "named_parameters" for each in walk(one.iter)):
                    names = {each.id for each in walk(one.target) if isinstance(each, ast.Name)}
                    for test in one.ifs:
                        yield from ((file, function, word) for word in _words(test, names))


def _words(test: ast.expr, names: set[str]) -> Iterator[ast.expr]:
    """`prefix` of `name.startswith(prefix)`, `prefix in name`, `re.match(prefix, name)`; not of a negation."""
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr in _MATCHES and test.args:
        first = test.args[0]
        if isinstance(first, (ast.Name, ast.Constant)) and (
            dotted_name(test.func.value) in names or len(test.args) > 1
        ):
            yield first
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.In, ast.Eq)):
        sides = [test.left, test.comparators[0]]
        others = [one for one in sides if isinstance(one, (ast.Name, ast.Constant)) and dotted_name(one) not in names]
        if len(others) == 1:
            yield others[0]


def _key(name: str, function: Function) -> str | None:
    """The key under which a name is looked up: `spec["prefix"]`, `spec.pop("prefix")`, `spec.get("prefix")`."""
    for node in walk(function):
        if isinstance(node, ast.Assign) and any(dotted_name(one) == name for one in node.targets):
            value = node.value
            given = value.slice if isinstance(value, ast.Subscript) else None
            if (
                isinstance(value, ast.Call)
                and isinstance(value.func, ast.Attribute)
                and value.func.attr in ("pop", "get")
            ):
                given = value.args[0] if value.args else None
            if isinstance(given, ast.Constant) and isinstance(given.value, str):
                return given.value
    return None


def _in_settings(key: str, program: Program) -> Iterator[Name]:
    for document in program.documents(key):
        for one in document.named(key):
            if isinstance(one.value, str) and one.value and one.value in one.raw:
                yield Name(
                    value=one.value,
                    culprit=culprit_at(one.file, one.span, _why(one.value)),
                    path=one.file.path,
                    start=one.span[0] + one.raw.index(one.value),
                )


def _in_dicts(key: str, program: Program) -> Iterator[Name]:
    for file in program.parsed():
        for node in file.walk():
            for given, value in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ():
                is_it = isinstance(given, ast.Constant) and given.value == key
                if is_it and isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield _in_code(value, file)


def _in_code(node: ast.Constant, file: SourceFile) -> Name:
    value = str(node.value)
    start = file.span(node)[0] + max(file.segment(node).find(value), 0)
    return Name(value=value, culprit=culprit_of(file, node, _why(value)), path=file.path, start=start)


def _why(value: str) -> str:
    return f"asks for parameters named `{value}`, of which the model has none"
