"""The line that shares the data out unevenly leads where a rank waited for another one."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, failed, write

SOURCE = "def rows(order, rank, world):\n    return order[rank::world]\n"
WAITED = "Timed out waiting 6000ms for recv operation to complete"
LOST = "Connection closed by peer [127.0.0.1]:945. This is typically caused by a remote worker crashing."
MESSAGES = {
    "another failure": ("mat1 and mat2 shapes cannot be multiplied", False),
    "a rank that never came": ("wait timeout after 10000ms, keys: /worker/0", False),
    "a rank that was killed": (f"{LOST} process 1 terminated with signal SIGKILL", False),
    "a collective that timed out": (WAITED, True),
    "a lost peer": (LOST, True),
    "a barrier": ("Rank 1 successfully reached monitoredBarrier, but received errors", True),
}


@pytest.mark.parametrize(("message", "is_told"), MESSAGES.values(), ids=MESSAGES)
def test_the_line_without_an_edit(message: str, is_told: bool, tmp_path: pathlib.Path) -> None:
    """Which rows are left out or repeated is the author's to say."""
    found = best("uneven_shards", write(tmp_path, {"shards.py": SOURCE}), incident=failed(message=message))
    assert (found is not None) == is_told
    assert found is None or (found.edits == () and found.culprit.line == 2)
