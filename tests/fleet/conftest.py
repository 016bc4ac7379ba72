"""What the tests of triage share: a folder of logs, and a triage that gives its rows."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

from explainer.fleet.explained import explain_source
from explainer.fleet.listing import list_sources
from explainer.fleet.row import Row
from explainer.fleet.triage import Listener, Outcome, Request, triage
from tests.fleet.logs import write_logs

COUNT = 200


class Collector(Listener):
    """Keeps the rows, and calls a function each time an object is done."""

    def __init__(self, on_advance: Callable[[int], None] | None = None) -> None:
        self.rows: list[Row] = []
        self.advanced = 0
        self._on_advance = on_advance

    def advance(self, source, reading) -> None:
        self.advanced += 1
        if self._on_advance is not None:
            self._on_advance(self.advanced)

    def row(self, row: Row) -> None:
        self.rows.append(row)


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A few hundred generated logs."""
    folder = tmp_path_factory.mktemp("logs")
    write_logs(folder, COUNT)
    return folder


@pytest.fixture(scope="session")
def expected(logs: pathlib.Path) -> list[Row]:
    """Their rows, explained one after another in this process."""
    return [row for source in list_sources([str(logs)]) for row in explain_source(source, None)]


@pytest.fixture
def run_triage() -> Callable[..., tuple[Outcome, list[Row], int]]:
    """Triages words; gives the outcome, the rows, and how many objects were read."""

    def run(*words: object, on_advance: Callable[[int], None] | None = None, **options):
        collector = Collector(on_advance)
        options = {"workers": 2, **options}
        if "out" in options:
            options["out"] = str(options["out"])
        outcome = triage(Request(words=tuple(map(str, words)), **options), collector)
        return outcome, collector.rows, collector.advanced

    return run
