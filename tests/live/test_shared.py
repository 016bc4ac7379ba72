"""A tensor with the memory of an array: what NumPy writes before the backward falsifies gradients without a word."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from dataclasses import replace

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from explainer.fix.splice import splice  # noqa: E402
from tests.fix.rewriting import best, changed_lines, failed, write  # noqa: E402
from tests.live.tracing import lines  # noqa: E402

Make = Callable[["numpy.ndarray"], "torch.Tensor"]
SHARING: dict[str, Make] = {
    "from_numpy": lambda state: torch.from_numpy(state),
    "as_tensor": lambda state: torch.as_tensor(state),
    "a view of it": lambda state: torch.from_numpy(state)[:, 1:].reshape(4, 2),
}
COPIES: dict[str, Make] = {
    "tensor": lambda state: torch.tensor(state),
    "another dtype": lambda state: torch.as_tensor(state, dtype=torch.float64).float(),
    "a clone": lambda state: torch.from_numpy(state).clone(),
    "a copy of the array": lambda state: torch.from_numpy(state.copy()),
}


def rollout(make: Make, *, when: str) -> Callable[[], None]:
    """Steps of a policy whose environment writes its state in place, between the forwards and the backward or elsewhere."""
    width = make(numpy.ones((4, 3), numpy.float32)).shape[1]
    net = torch.nn.Linear(width, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step() -> None:
        state = numpy.ones((4, 3), numpy.float32)
        for _ in range(2):
            losses = []
            for _ in range(2):
                losses.append(net(make(state)).sum())
                if when == "between":
                    state += 1.0
            torch.stack(losses).sum().backward()
            if when == "after":
                state += 1.0
            optimizer.step()
            optimizer.zero_grad()

    return step


@pytest.mark.parametrize("make", SHARING.values(), ids=SHARING)
def test_a_write_into_the_array_is_seen(make: Make) -> None:
    """The line that shares the memory is named."""
    (found,) = lines(rollout(make, when="between"), fails=False)
    assert (found.kind, found.operation) == ("hidden-write", "from_numpy")
    assert "the memory of an array" in found.says


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
def test_copies_are_safe(make: Make) -> None:
    """Whatever is written into the array."""
    assert lines(rollout(make, when="between"), fails=False) == ()


def test_a_write_behind_the_backward_is_right() -> None:
    """A buffer that is filled anew for each step."""
    assert lines(rollout(SHARING["from_numpy"], when="after"), fails=False) == ()


def test_what_no_backward_needs_may_be_written() -> None:
    """A sum saves nothing of what it adds."""
    weight = torch.ones(3, requires_grad=True)
    state = numpy.ones(3, numpy.float32)

    def step() -> None:
        loss = (weight + torch.from_numpy(state)).sum()
        state[:] = 2.0
        loss.backward()

    assert lines(step, fails=False) == ()


SOURCE = """import numpy as np
import torch
net = torch.nn.Linear(3, 1)
def main():
    state, losses = np.ones((4, 3), np.float32), []
    for _ in range(2):
        losses.append(net(torch.MAKE(state)).sum())
        state += 1.0
    torch.stack(losses).sum().backward()
main()
gradient = net.weight.grad
"""


@pytest.mark.parametrize("make", ["from_numpy", "as_tensor"])
def test_the_array_is_copied(tmp_path: pathlib.Path, make: str) -> None:
    """The gradient is that of what the network was given."""
    import gradfix

    source, path = SOURCE.replace("MAKE", make), tmp_path / "train.py"
    path.write_text(source)
    space: dict = {}
    with gradfix.trace() as seen:
        exec(compile(source, str(path), "exec"), space)  # noqa: S102
    assert space["gradient"].tolist() == [[24.0] * 3]
    incident = replace(failed(), traced=seen.lines)
    proposal = best("copy_shared_array", write(tmp_path, {"train.py": source}), incident=incident)
    assert proposal is not None
    after = splice(source, proposal.edits)
    assert changed_lines(source, after) == ["losses.append(net(torch.tensor(state)).sum())"]
    exec(compile(after, "after", "exec"), space)  # noqa: S102
    assert space["gradient"].tolist() == [[12.0] * 3]
