"""Logs that show a failure only in their metrics get the right cause; those that show none get no confident one."""

from __future__ import annotations

import pytest

from tests.knowledge.training_logs import LOGS


@pytest.mark.parametrize(("causes", "text"), LOGS.values(), ids=LOGS.keys())
def test_training_log(explain_log, causes: tuple[str, ...], text: str) -> None:
    """One of the expected causes comes first; where none is expected nothing is claimed with confidence."""
    findings = explain_log(text).findings
    if causes:
        assert findings, "nothing found"
        assert findings[0].cause in causes
    else:
        assert not findings or findings[0].confidence == "possible"
