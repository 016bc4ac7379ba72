"""Points at the names of which each parameter of the live model fits one, so that all are frozen. No edit: what was to train the author knows."""

from __future__ import annotations

from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_at
from explainer.fix.network.all_frozen import find_all_frozen


def propose(context: Context) -> Iterator[Proposal]:
    """The last of the words of a test that takes every parameter, and the others behind it."""
    for found in find_all_frozen(context):
        for number, one in enumerate(reversed(found.words)):
            count = len(found.taken(one.text))
            why = f"takes {count} of the {len(found.names)} parameters, and with the others all of them"
            yield Proposal(edits=(), culprit=culprit_at(one.file, one.span, why), belief=2.0 - 0.1 * number)
