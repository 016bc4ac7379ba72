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


def test_a_result_that_a_pool_could_not_send(explain_log) -> None:
    """All of the result is printed before the reason, however long it is."""
    rows = "".join(f"        [{number}.0000, 0.1667],\n" for number in range(300))
    report = explain_log(
        'Traceback (most recent call last):\n  File "/home/user/train.py", line 57, in main\n    episodes = pool.map(play, jobs)\n'
        f"multiprocessing.pool.MaybeEncodingError: Error sending result: '[tensor([{rows}])]'. Reason: "
        "'RuntimeError('Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
        "crossing process boundaries.')'\n"
    )
    assert report.findings[0].cause == "no-graph/deepcopy-of-non-leaf"


WORKER = """Traceback (most recent call last):
  File "/home/user/train.py", line 50, in main
    trainer.train()
  File "/opt/lib/python3.11/site-packages/{}.py", line 1576, in train
    data.reraise()
KeyError: Caught KeyError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/opt/lib/python3.11/site-packages/torch/utils/data/_utils/fetch.py", line 57, in fetch
    return self.collate_fn(data)
  File "/home/user/batch.py", line 14, in __call__
    rank = torch.tensor([r["rank"] for r in rows])
KeyError: 'rank'

"""


@pytest.mark.parametrize(
    ("driver", "is_known"), [("transformers/trainer", True), ("torch/utils/data/dataloader", False)]
)
def test_what_asked_a_worker_is_above_its_failure(explain_log, driver: str, is_known: bool) -> None:  # noqa: FBT001
    """A column that is missing in a worker of a Trainer is known by the Trainer's frames; a loop of one's own drops none."""
    causes = [one.cause for one in explain_log(WORKER.format(driver)).findings]
    assert ("trainer/columns-removed" in causes[:1]) is is_known
