"""The process that the programs of the rule base are forked from."""

from __future__ import annotations

import pytest

from tests.knowledge.reproducer import Runner


@pytest.fixture(scope="session")
def runner():
    """One server for all programs that this worker runs: it has imported torch and its libraries."""
    pytest.importorskip("torch")
    server = Runner()
    yield server
    server.close()
