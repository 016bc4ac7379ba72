"""Whether an exception only says that another process has failed: a lost connection, a collective that timed out."""

from __future__ import annotations

from collections.abc import Sequence

from explainer.catalog.catalog import Catalog
from explainer.match.signature import find_signatures
from explainer.match.utterance import TEARDOWN, utterance_of
from explainer.model.incident import ExceptionRecord


def is_echo(record: ExceptionRecord, catalog: Catalog) -> bool:
    """Whether all that the rule base knows of an exception are messages about other processes, or it is mere teardown."""
    if record.type.rpartition(".")[2] in TEARDOWN:
        return True
    said = [utterance_of(record)]
    if not find_signatures(catalog, said, catalog.is_messenger):
        return False
    return all(catalog.is_messenger(one.signature) for one in find_signatures(catalog, said))


def is_echo_chain(records: Sequence[ExceptionRecord], catalog: Catalog) -> bool:
    """Whether the first exception of a chain is an echo: what a handler of it raised is its consequence."""
    named = next((one for one in records if one.type), None)
    return named is not None and is_echo(named, catalog)
