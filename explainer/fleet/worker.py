"""What a process of the pool does: rows for one object after another, until there are no more."""

from __future__ import annotations

from multiprocessing.connection import Connection

from explainer.fleet.explained import catalog_of, explain_source
from explainer.fleet.row import reading_of

READY = "ready"


def serve(link: Connection, knowledge: str | None) -> None:
    """Answer each (place, object) that comes with (place, reading), after a first word that says that this process works."""
    catalog_of(knowledge)
    try:
        link.send(READY)
        while True:
            index, source = link.recv()
            link.send((index, reading_of(explain_source(source, knowledge))))
    except (EOFError, OSError):
        return  # the one that asked has gone
