"""A word of the settings that a loss does not know: `reduction: mean` where it asks `if how == "elementwise_mean"`.

The loss then falls through to its last `return`, which gives back one value for each element.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.codemod import Proposal, culprit_of, edit_of
from explainer.fix.loss.reduction_of_base import wrapper_of
from explainer.fix.loss.reduction_of_branch import maker_of
from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.setting.flow import settings_behind
from explainer.source.value.binding import walk_scope

_DEPTH = 3
_MEANINGS = {"mean": "mean", "avg": "mean", "average": "mean", "averaged": "mean", "sum": "sum", "summed": "sum"}


@dataclass(frozen=True, slots=True)
class _Branch:
    """A comparison of a word with those that it knows, and the reduction behind it: "mean", "sum"; None where there is none."""

    test: ast.Compare
    words: tuple[str, ...]
    how: str | None


def reduced_by_word(loss: ast.expr, file: SourceFile, program: Program) -> Iterator[Proposal]:
    """An edit that lets the function which reduces a loss know the one word that the settings say, which it does not."""
    for where, function in _makers(loss, file, program, 0):
        branches = list(_branches(function))
        words = {one for branch in branches for one in branch.words}
        said = {
            setting.value
            for branch in branches
            for setting in settings_behind(branch.test.left, where, program)
        }  # fmt: skip
        word = said.pop() if len(said) == 1 else None
        meant = _meaning(word) if isinstance(word, str) and word not in words else None
        chosen = [one for one in branches if meant is not None and one.how == meant]
        if len(chosen) != 1:
            continue
        (branch,) = chosen
        asked = where.segment(branch.test.left)
        known = ", ".join(f'"{one}"' for one in (*branch.words, word))
        yield Proposal(
            edits=(edit_of(where, branch.test, f"{asked} in ({known})"),),
            culprit=culprit_of(where, branch.test, f'does not know the word of the settings, "{word}"'),
            belief=2.4,
            title=f'Take "{word}" for what it says, as the settings ask',
            because=f'the settings say "{word}", and no branch of `{function.name}` knows it: the loss comes back one value for each element',
        )


def _makers(loss: ast.expr, file: SourceFile, program: Program, depth: int) -> Iterator[tuple[SourceFile, Function]]:
    """The function that makes a loss, and those whose value it gives back."""
    found = maker_of(loss, file, program) if depth < _DEPTH else None
    if found is not None:
        yield found
        where, function = found
        for one in walk_scope(function):
            if isinstance(one, ast.Return) and one.value is not None:
                yield from _makers(one.value, where, program, depth + 1)


def _branches(function: Function) -> Iterator[_Branch]:
    for one in walk_scope(function):
        if isinstance(one, ast.If) and isinstance(one.test, ast.Compare):
            end = one.body[-1]
            value = end.value if isinstance(end, (ast.Return, ast.Assign)) else None
        elif isinstance(one, ast.IfExp) and isinstance(one.test, ast.Compare):
            value = one.body
        else:
            continue
        words = _words(one.test)
        if words:
            wrapper = wrapper_of(value) if value is not None else None
            yield _Branch(one.test, words, next((how for how in ("mean", "sum") if how in (wrapper or "")), None))


def _words(test: ast.Compare) -> tuple[str, ...]:
    """The words that a comparison knows: of `how == "mean"`, `how in ("mean", "avg")`."""
    if len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Eq, ast.In)):
        return ()
    other = test.comparators[0]
    parts = other.elts if isinstance(other, (ast.Tuple, ast.List, ast.Set)) else [other]
    words = [one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return tuple(words) if len(words) == len(parts) else ()


def _meaning(word: str) -> str | None:
    """What a word asks for; None where it says neither, or both."""
    found = {_MEANINGS[one] for one in re.split(r"[\W_]+", word.lower()) if one in _MEANINGS}
    return found.pop() if len(found) == 1 else None
