"""An array that has the memory of what a graph computed: what NumPy writes there, the loss reads."""

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

Out = Callable[["torch.Tensor"], "numpy.ndarray"]
SHARING: dict[str, Out] = {
    "numpy": lambda out: out.detach().numpy(),
    "on the CPU already": lambda out: out.detach().cpu().float().numpy(),
    "by force": lambda out: out.numpy(force=True),
    "by NumPy": lambda out: numpy.asarray(out.detach()),
}
COPIES: dict[str, Out] = {
    "a copy": lambda out: out.detach().numpy().copy(),
    "another dtype": lambda out: out.detach().double().numpy(),
    "a clone": lambda out: out.detach().clone().numpy(),
    "a result": lambda out: out.detach().exp().numpy(),
}


def training(take: Out, *, when: str = "before") -> Callable[[], None]:
    """A step whose meter overwrites the array that it is given, before the loss or behind the backward."""
    net = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def meter(out: torch.Tensor) -> None:
        scores = take(out)
        scores -= 1.0

    def step() -> None:
        for _ in range(2):
            out = net(torch.ones(4, 3))
            if when == "before":
                meter(out)
            loss = (out * out).sum()
            loss.backward()
            if when == "after":
                meter(out)
            optimizer.step()
            optimizer.zero_grad()

    return step


@pytest.mark.parametrize("take", SHARING.values(), ids=SHARING)
def test_a_write_into_the_array_is_seen(take: Out) -> None:
    """The line that takes the array is named."""
    (found,) = lines(training(take), fails=False)
    assert (found.kind, found.operation, found.function) == ("hidden-write", "numpy", "<lambda>")
    assert "unseen by autograd" in found.says


@pytest.mark.parametrize("take", COPIES.values(), ids=COPIES)
def test_copies_are_safe(take: Out) -> None:
    """Whatever is written into them."""
    assert lines(training(take), fails=False) == ()


def test_a_write_behind_the_backward_is_right() -> None:
    """Nobody reads it any more."""
    assert lines(training(SHARING["numpy"], when="after"), fails=False) == ()


def test_what_was_saved_already_is_seen() -> None:
    """A sigmoid saves its result: overwritten between the loss and the backward, the gradient is another."""
    net = torch.nn.Linear(3, 1)

    def step() -> None:
        out = torch.sigmoid(net(torch.ones(4, 3)))
        loss = out.sum()
        out.detach().numpy()[:] = 0.0
        loss.backward()

    (found,) = lines(step, fails=False)
    assert (found.kind, found.operation) == ("hidden-write", "numpy")


def test_weights_and_plain_tensors_may_be_written() -> None:
    """Nothing that a graph computed is changed."""
    weight = torch.ones(3, requires_grad=True)

    def step() -> None:
        array, plain = weight.detach().numpy(), torch.ones(3)
        array *= 0.5
        plain.numpy()[:] = 2.0
        (weight * plain).sum().backward()

    assert lines(step, fails=False) == ()


SOURCE = """import torch
net = torch.nn.Linear(3, 1)
def confidence(out):
    scores = out.detach().numpy()
    scores *= 2.0
    return scores.max()
out = net(torch.ones(4, 3))
confidence(out)
loss = (out * out).sum()
loss.backward()
"""


def test_the_array_is_copied(tmp_path: pathlib.Path) -> None:
    """Where it is taken."""
    import gradfix

    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    with gradfix.trace() as seen:
        exec(compile(SOURCE, str(path), "exec"), {})  # noqa: S102
    incident = replace(failed(), traced=seen.lines)
    proposal = best("copy_shared_array", write(tmp_path, {"train.py": SOURCE}), incident=incident)
    assert proposal is not None
    after = splice(SOURCE, proposal.edits)
    assert changed_lines(SOURCE, after) == ["scores = out.detach().numpy().copy()"]
    with gradfix.trace() as seen:
        exec(compile(after, str(path), "exec"), {})  # noqa: S102
    assert seen.lines == ()
