"""A trainer is not told of an adapter that its model has: `peft_config` goes where the model comes from `get_peft_model`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places, message_of
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import remove_argument
from explainer.source.tree import walk

_BOTH = ("`PeftModel` instance", "`peft_config`")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the call that raised."""
    if not all(one in message_of(context) for one in _BOTH):
        return
    for file, statement in list(crash_places(context))[:1]:
        for call in (one for one in walk(statement) if isinstance(one, ast.Call)):
            for keyword in call.keywords:
                if keyword.arg == "peft_config":
                    yield Proposal(
                        edits=(remove_argument(file, call, keyword),),
                        culprit=culprit_of(file, keyword.value, "asks for a second adapter on a model that has one"),
                        belief=2.0,
                    )
