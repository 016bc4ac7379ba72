"""Points at where the ranks get parts of the data of unequal size, once some have waited for another. No edit.

Leaving the last rows out, repeating some, and `Join` train on other data each: the author decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.source.data.shard import uneven_shards

_WAITED = re.compile(
    r"Watchdog caught collective operation timeout|milliseconds before timing out|detected by watchdog at work"
    r"|Timed out waiting \d+ms|monitoredBarrier|Connection closed by peer|Connection reset by peer|exhausted (?:all )?inputs"
)
_ENDED = re.compile(r"SIGKILL|SIGSEGV|SIGBUS|SIGABRT|exitcode\s*: -\d|out of memory", re.IGNORECASE)
_WHY = "gives the ranks unequal parts where their number does not divide, so that some make a step more than the others"


def propose(context: Context) -> Iterator[Proposal]:
    """The lines that share the data out, where a rank waited for another one and none is known to have been killed."""
    lines = [message_of(context), *(one.text for one in context.incident.log)]
    if not any(_WAITED.search(one) for one in lines) or any(_ENDED.search(one) for one in lines):
        return
    for number, (file, node) in enumerate(uneven_shards(context.program)):
        yield Proposal(edits=(), culprit=culprit_of(file, node, _WHY), belief=1.5 - 0.1 * number, is_origin=True)
