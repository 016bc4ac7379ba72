"""Points at the names of which each parameter of the live model fits one, so that all are frozen. No edit: what was to train the author knows."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_at
from explainer.source.name_test import GLOB, STARTS, find_name_tests, words_of


def propose(context: Context) -> Iterator[Proposal]:
    """The last of the words of a test that takes every parameter, and the others behind it."""
    live = next((one.value.split() for one in context.incident.facts if one.name == "live_parameter_names"), [])
    for test in find_name_tests(context.program) if live else ():
        words = words_of(test.words, context.program) or []
        if not words or not all(any(_fits(name, one.text, test.how) for one in words) for name in live):
            continue
        for number, one in enumerate(reversed(words)):
            count = sum(_fits(name, one.text, test.how) for name in live)
            why = f"takes {count} of the {len(live)} parameters, and with the others all of them"
            span = (one.start, one.start + len(one.text))
            yield Proposal(edits=(), culprit=culprit_at(one.file, span, why), belief=2.0 - 0.1 * number)


def _fits(name: str, word: str, how: str) -> bool:
    if how == STARTS:
        return name.startswith(word)
    return fnmatch.fnmatchcase(name, word) if how == GLOB else name == word
