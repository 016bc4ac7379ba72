"""Freezes a pooler of transformers that no loss reaches, so that DDP waits for no gradient of it.

Rather than `add_pooling_layer=False`: the weights that are drawn after it and the names in saved states stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, insert_before
from explainer.source.name import dotted_name
from explainer.source.network.data_parallel import Wrapping
from explainer.source.network.pooler import (
    attribute_of,
    is_of_transformers,
    is_pooled_output_read,
    pooled,
    poolers_made,
    poolers_named,
)
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_FREEZE = ".requires_grad_(False)"
_WHY = "makes a pooler, whose output nothing reads: it gets no gradient"
_TITLE = "Freeze the pooler, whose output nothing reads"
_BECAUSE = "`add_pooling_layer=False` builds most models without one; a frozen one leaves the other weights and saved states as they are"


def freeze_poolers(wrapping: Wrapping, context: Context) -> Iterator[Proposal]:
    """An edit that freezes the poolers of a wrapped model: those that the live module names, else those that the source shows."""
    live = context.incident.fact("live_unreduced")
    model = Value(wrapping.model, wrapping.file)
    paths = poolers_named(live.value.split()) if live is not None else list(poolers_made(model, context.program))
    holders = [one[-2] if len(one) > 1 else (dotted_name(wrapping.model) or "") for one in paths]
    if any(is_pooled_output_read(one.rpartition(".")[2], context.program) for one in holders):
        return
    if paths and is_of_transformers(model, context.program):
        yield from _whole(wrapping, paths, context)
        return
    found = [list(pooled(one, model, context.program)) for one in paths]
    if not found or not all(found):
        return
    places = list({id(one.statement): one for each in found for one in each}.values())
    edits = [insert_after(one.file, one.statement, f"{one.name}{_FREEZE}") for one in places]
    yield Proposal(
        edits=tuple(edits),
        culprit=culprit_of(places[0].file, places[0].call, _WHY),
        belief=2.0 if live is not None else 1.0,
        title=_TITLE,
        because=_BECAUSE,
    )


def _whole(wrapping: Wrapping, paths: list[list[str]], context: Context) -> Iterator[Proposal]:
    """Where a model of transformers is wrapped itself."""
    name = dotted_name(wrapping.model)
    made = resolver_of(context.program).constructors_of(Value(wrapping.model, wrapping.file))[0]
    if name is None:
        return
    lines = [f"{name}{attribute_of(one)}{_FREEZE}" for one in paths]
    yield Proposal(
        edits=(insert_before(wrapping.file, wrapping.file.statement(wrapping.call), "\n".join(lines)),),
        culprit=culprit_of(made.file, made.node, _WHY),
        belief=2.0,
        title=_TITLE,
        because=_BECAUSE,
    )
