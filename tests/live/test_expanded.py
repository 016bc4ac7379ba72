"""A part of an expanded tensor that is written changes all its rows, and torch refuses none of it."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from dataclasses import replace

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from explainer.fix.splice import splice  # noqa: E402
from tests.fix.rewriting import best, changed_lines, failed, write  # noqa: E402
from tests.live.tracing import lines  # noqa: E402


def row(mask: torch.Tensor) -> None:
    mask[1, 2:] = 0


def added(mask: torch.Tensor) -> None:
    mask[1] += 1


def flags(mask: torch.Tensor) -> None:
    mask[mask > 5] = 0


EXPANDED = {
    "expand": lambda: torch.ones(4).expand(3, 4),
    "expand_as": lambda: torch.ones(4).expand_as(torch.zeros(3, 4)),
    "broadcast_to": lambda: torch.broadcast_to(torch.ones(4), (3, 4)),
    "behind a view": lambda: torch.ones(4, 1).expand(4, 3).t(),
}
OWN = {
    "a clone": lambda: torch.ones(4).expand(3, 4).clone(),
    "repeated": lambda: torch.ones(4).repeat(3, 1),
    "a batch of one": lambda: torch.ones(1, 4).expand(1, 4),
    "its source": lambda: torch.ones(3, 4),
}


@pytest.mark.parametrize("write_part", [row, added])
@pytest.mark.parametrize("make", EXPANDED.values(), ids=EXPANDED)
def test_a_written_row_is_seen(make: Callable[[], torch.Tensor], write_part: Callable[[torch.Tensor], None]) -> None:
    """The line that expands is named."""

    def step() -> None:
        mask = make()
        write_part(mask)

    if "view" in next(name for name, one in EXPANDED.items() if one is make):
        mask = make()
        assert mask.stride()[0] == 0
    (found,) = lines(step, fails=False)
    assert (found.kind, found.function) == ("expanded", "<lambda>")
    assert "one row in memory" in found.says


@pytest.mark.parametrize("make", OWN.values(), ids=OWN)
def test_rows_of_their_own_may_be_written(make: Callable[[], torch.Tensor]) -> None:
    """Each is changed alone; so is the row of a batch of one."""

    def step() -> None:
        mask = make()
        mask[0, 2:] = 0

    assert lines(step, fails=False) == ()


def test_a_mask_may_be_the_same_for_all_rows() -> None:
    """What a mask picks is not told: torch itself warns of it."""

    def step() -> None:
        with pytest.warns(UserWarning, match="expanded tensors is deprecated"):
            flags(torch.ones(4).expand(3, 4))

    assert lines(step, fails=False) == ()


SOURCE = """import torch
def pad(rows):
    longest = max(map(len, rows))
    mask = torch.ones(longest).expand(len(rows), longest)
    for at, row in enumerate(rows):
        mask[at, len(row):] = 0
    return mask
total = pad(["ab", "abcd"]).sum()
"""


def test_it_gets_memory_of_its_own(tmp_path: pathlib.Path) -> None:
    """A clone behind the expansion."""
    import gradfix

    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    space: dict = {}
    with gradfix.trace() as seen:
        exec(compile(SOURCE, str(path), "exec"), space)  # noqa: S102
    assert space["total"] == 4
    incident = replace(failed(), traced=seen.lines)
    proposal = best("clone_expanded", write(tmp_path, {"train.py": SOURCE}), incident=incident)
    assert proposal is not None
    after = splice(SOURCE, proposal.edits)
    assert changed_lines(SOURCE, after) == ["mask = torch.ones(longest).expand(len(rows), longest).clone()"]
    exec(compile(after, "after", "exec"), space)  # noqa: S102
    assert space["total"] == 6


class Odd(torch.Tensor):
    """A tensor that cannot be asked for its strides."""

    def stride(self, *_: object) -> tuple[int, ...]:
        raise RuntimeError("there are none")


def test_what_cannot_be_looked_at_is_written_all_the_same() -> None:
    """Whatever is wrong with looking, the program goes on as it would."""
    odd = torch.ones(3, 4).as_subclass(Odd)

    def step() -> None:
        odd[1, 2:] = 0

    assert lines(step, fails=False) == ()
    assert odd.as_subclass(torch.Tensor).sum() == 10
