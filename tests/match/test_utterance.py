"""What an exception says that has no message."""

from __future__ import annotations

import pytest

TRACE = """Traceback (most recent call last):
  File "/home/user/train.py", line 33, in forward
    {}
AssertionError
"""


@pytest.mark.parametrize(
    ("line", "is_known"),
    [
        ("assert not torch.isnan(out).any()", True),
        ("assert loss.isfinite().all()", True),
        ("assert out.shape == target.shape", False),
    ],
)
def test_an_assertion_without_a_message(explain_log, line: str, is_known: bool) -> None:  # noqa: FBT001
    """Its own line is read: one that asks for NaN says that there was one."""
    report = explain_log(TRACE.format(line))
    assert [one.cause.partition("/")[0] for one in report.findings[:1]] == (["nan"] if is_known else [])
