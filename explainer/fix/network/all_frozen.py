"""The tests of names that freeze every parameter of the live model."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.fix.codemod import Context
from explainer.source.network.name_test import NameTest, Word, find_name_tests, fits, words_of
from explainer.source.value.lineage import scope_of

_FREEZES = re.compile(r"requires_grad|freez", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AllFrozen:
    """A test whose words together take all the names: `names` are those of the live model."""

    test: NameTest
    words: Sequence[Word]
    names: Sequence[str]

    def taken(self, word: str) -> list[str]:
        """The names that one word takes."""
        return [name for name in self.names if fits(name, word, self.test.how)]


def find_all_frozen(context: Context) -> Iterator[AllFrozen]:
    """Each such test, in a function that switches gradients off; none where the names of the live model are not known."""
    live = next((one.value.split() for one in context.incident.facts if one.name == "live_parameter_names"), [])
    for test in find_name_tests(context.program) if live else ():
        words = words_of(test.words, context.program) or []
        found = AllFrozen(test, words, live)
        if (
            words
            and _freezes(test, context)
            and len({name for one in words for name in found.taken(one.text)}) == len(live)
        ):
            yield found


def _freezes(test: NameTest, context: Context) -> bool:
    scope = scope_of(test.owner, test.file, context.program)
    code = test.file.text if scope is None or isinstance(scope, ast.Module) else test.file.segment(scope)
    return _FREEZES.search(code) is not None
