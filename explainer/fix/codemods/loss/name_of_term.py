"""The weights of a loss are given the names that its terms have: `"objectness_loss": 1.0` becomes `"loss_objectness": 1.0`.

Where a loss adds up those terms for which there is a weight, `if name in weights: total = total + weights[name] * value`, and no
term has one, the total stays the constant with which it began. Only where each name is another order of a term's words, or its
words but for "loss" and the like.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of, edit_of
from explainer.fix.setting.edit import rename_key
from explainer.model.finding import Culprit
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.setting.flow import documents_behind
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_FILLERS = frozenset(("loss", "losses", "weight", "weights", "coef", "coeff", "lambda", "term", "scale", "w", "l"))


@dataclass(frozen=True, slots=True)
class _Key:
    """One name of a table of weights, and the edit that writes another."""

    word: str
    culprit: Culprit
    rename: object
    file: SourceFile | None = None

    def edit(self, new: str) -> Edit | str:
        """The edit, or why there is none."""
        if isinstance(self.rename, ast.Constant) and self.file is not None:
            quote = self.file.segment(self.rename)[-1]
            return edit_of(self.file, self.rename, f"{quote}{new}{quote}")
        return rename_key(self.rename, new)  # type: ignore[arg-type]


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all names of a table that none of the terms has."""
    if not context.has_failed:
        return
    program = context.program
    for file in program.parsed():
        for node in file.walk():
            asked = _asked(node) if isinstance(node, ast.For) else None
            if asked is None:
                continue
            terms, table = asked
            names = list(dict.fromkeys(_term_names(Value(terms, file), program)))
            keys = list(_keys(table, file, program))
            pairs = _pairs([one.word for one in keys], names)
            edits = [one.edit(pairs[one.word]) for one in keys] if pairs else []
            if edits and all(isinstance(one, Edit) for one in edits):
                yield Proposal(
                    edits=tuple(one for one in edits if isinstance(one, Edit)),
                    culprit=keys[0].culprit,
                    belief=2.5,
                )


def _asked(loop: ast.For) -> tuple[ast.expr, ast.expr] | None:
    """The terms and the table of `for name, value in terms.items(): if name in table: ...`."""
    items, target = loop.iter, loop.target
    called = items.func if isinstance(items, ast.Call) else None
    first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else None
    if not isinstance(called, ast.Attribute) or called.attr != "items" or not isinstance(first, ast.Name):
        return None
    for node in walk(loop):
        test = node.test if isinstance(node, ast.If) else None
        is_in = isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.In)
        if is_in and isinstance(test, ast.Compare) and dotted_name(test.left) == first.id:
            return called.value, test.comparators[0]
    return None


def _term_names(value: Value, program: Program, depth: int = 0) -> Iterator[str]:
    """The keys of the dictionaries that an expression stands for, also where a function returns them."""
    node, resolver = value.node, resolver_of(program)
    if isinstance(node, ast.Dict):
        yield from (str(key.value) for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
        return
    target = resolver.function_of(node, value) if isinstance(node, ast.Call) else None
    if target is not None and isinstance(node, ast.Call):
        found = resolver.returns_of(target, node, value)
    else:
        found = [one for one in resolver.behind(value) if one.node is not node]
        yield from (one.key for one in found if one.key is not None)
    for one in found if depth < 6 else ():
        yield from _term_names(one, program, depth + 1)


def _keys(table: ast.expr, file: SourceFile, program: Program) -> Iterator[_Key]:
    """The names of a table, in a configuration file or in the program."""
    for document, path, group in documents_behind(table, file, program):
        for setting in document.settings:
            if setting.path[:-1] == path and setting.group == group and setting.key is not None:
                why = "is the name of no term of the loss"
                yield _Key(setting.name, culprit_at(setting.file, setting.key, why), setting)
    for one in resolver_of(program).behind(Value(table, file)):
        for key in one.node.keys if isinstance(one.node, ast.Dict) else ():
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield _Key(key.value, culprit_of(one.file, key, "is the name of no term of the loss"), key, one.file)


def _pairs(words: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """The one term that each name means; {} where a term has its name already, or a name may mean none or several."""
    if not words or set(words) & set(names):
        return {}
    found: dict[str, str] = {}
    for word in words:
        same = [one for one in names if sorted(_parts(one)) == sorted(_parts(word))]
        alike = same or [one for one in names if _core(one) and _core(one) == _core(word)]
        if len(alike) != 1:
            return {}
        found[word] = alike[0]
    return found if len(set(found.values())) == len(found) else {}


def _parts(word: str) -> list[str]:
    return [one.lower() for one in re.split(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])", word) if one]


def _core(word: str) -> frozenset[str]:
    return frozenset(_parts(word)) - _FILLERS
