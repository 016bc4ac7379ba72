"""Hooks that write the gradient which another branch has too: no error, and another training."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable, Iterator

import pytest

torch = pytest.importorskip("torch")
from explainer.live.hooked import Hooked  # noqa: E402
from tests.gate import some_at_gate  # noqa: E402
from tests.live.running import run  # noqa: E402

pytestmark = pytest.mark.torch
Hook = Callable[[torch.Tensor], torch.Tensor | None]
WEIGHT = torch.rand(4, 4).requires_grad_()


@pytest.fixture
def hooked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hooked]:
    """Hooks of tensors are watched; of nobody else afterwards."""
    monkeypatch.setattr(torch.Tensor, "register_hook", torch.Tensor.register_hook)
    watching = Hooked(torch)
    watching.watch()
    yield watching
    WEIGHT._backward_hooks = None  # noqa: SLF001


def scaled(gradient: torch.Tensor) -> None:
    gradient.mul_(0.5)


def branches() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.rand(3, 4, requires_grad=True)
    return x.exp(), x.sin()


def added(hook: Hook) -> torch.Tensor:
    slow, fast = branches()
    fast.register_hook(hook)
    return ((slow + fast) * 2).sum()


def residual(hook: Hook) -> torch.Tensor:
    h, _ = branches()
    f = h @ WEIGHT
    f.register_hook(hook)
    return (h + f).square().sum()


def viewed(hook: Hook) -> torch.Tensor:
    slow, fast = branches()
    flat = fast.view(12)
    flat.register_hook(hook)
    return ((slow + flat.view(3, 4)) * 2).sum()


def of_a_leaf(hook: Hook) -> torch.Tensor:
    WEIGHT.register_hook(hook)
    return ((WEIGHT + WEIGHT.detach().requires_grad_().exp()) * 2).sum()


def used_before(hook: Hook) -> torch.Tensor:
    """The later branch has gone on with the gradient by the time that the earlier one's hook gets it."""
    slow, fast = branches()
    slow.register_hook(hook)
    return ((slow + fast) * 2).sum()


def alone(hook: Hook) -> torch.Tensor:
    _, fast = branches()
    fast.register_hook(hook)
    return (fast * 2).sum()


def joined(hook: Hook) -> torch.Tensor:
    """Each has a part of one tensor."""
    slow, fast = branches()
    fast.register_hook(hook)
    return (torch.cat([slow, fast]) * 2).sum()


def of_a_weight(hook: Hook) -> torch.Tensor:
    WEIGHT.register_hook(hook)
    return (branches()[0] @ WEIGHT).square().sum()


def of_the_loss(hook: Hook) -> torch.Tensor:
    """Python has the gradient that a backward starts from."""
    loss = branches()[0].sum()
    loss.register_hook(hook)
    return loss


def of_a_view_alone(hook: Hook) -> torch.Tensor:
    flat = branches()[1].view(12)
    flat.register_hook(hook)
    return (flat.view(3, 4) * 2).sum()


def trained(hooked: Hooked, loss_of: Callable[[Hook], torch.Tensor], hook: Hook) -> list[dict]:
    """What is told after some steps, the first of which is for measuring."""
    for _ in range(4):
        loss_of(hook).backward()
        hooked.before_step()
        WEIGHT._backward_hooks = None  # noqa: SLF001
    return hooked.at_the_end()


@pytest.mark.parametrize("loss_of", [used_before, alone, joined, of_a_weight, of_the_loss, of_a_view_alone])
def test_nobody_else_has_it(loss_of: Callable[[Hook], torch.Tensor], hooked: Hooked) -> None:
    """What is written in place reaches no other branch."""
    assert trained(hooked, loss_of, scaled) == []


@pytest.mark.parametrize("loss_of", [added, residual, viewed, of_a_leaf])
def test_another_branch_has_it(loss_of: Callable[[Hook], torch.Tensor], hooked: Hooked) -> None:
    """The function is told."""
    (found,) = trained(hooked, loss_of, scaled)
    assert (pathlib.Path(found["file"]).name, found["function"]) == (pathlib.Path(__file__).name, "scaled")


def unchanged(gradient: torch.Tensor) -> None:
    gradient.clamp_(-100.0, 100.0)


def guarded(gradient: torch.Tensor) -> None:
    torch.nan_to_num_(gradient)


def of_a_copy(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.clone().mul_(0.5)


def looked_at(gradient: torch.Tensor) -> None:
    float(gradient.norm())


@pytest.mark.parametrize("hook", [unchanged, guarded, of_a_copy, looked_at, lambda gradient: gradient * 0.5])
def test_hooks_that_change_nothing(hook: Hook, hooked: Hooked) -> None:
    """Limits that no value meets, a copy, a look."""
    assert trained(hooked, added, hook) == []


def by_data(gradient: torch.Tensor) -> torch.Tensor:
    gradient.data.neg_()
    return gradient


class Scale:
    def __call__(self, gradient: torch.Tensor) -> None:
        gradient *= 0.5


@pytest.mark.parametrize("hook", [by_data, Scale(), functools.partial(torch.no_grad()(scaled))])
def test_any_kind_of_function(hook: Hook, hooked: Hooked) -> None:
    """Also one that autograd's own counter does not see, an object, a decorated one."""
    assert len(trained(hooked, added, hook)) == 1


def test_a_graph_of_gradients(hooked: Hooked) -> None:
    """What such a graph saves is held as well, and is no branch."""
    for _ in range(4):
        torch.autograd.grad(added(scaled), WEIGHT, create_graph=True, allow_unused=True)
        hooked.before_step()
    assert hooked.at_the_end() == []


def test_a_hook_fails_as_ever(hooked: Hooked) -> None:
    """The message names the function, and no line of ours stands in the traceback."""

    def keep_largest(gradient: torch.Tensor) -> torch.Tensor:
        return gradient[:1]

    with pytest.raises(RuntimeError, match="hook 'keep_largest' has changed the size"):
        added(keep_largest).backward()
    assert hooked.at_the_end() == []


PROGRAM = """import torch
from torch import nn

torch.manual_seed(0)
slow, fast, head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*slow.parameters(), *fast.parameters(), *head.parameters()], lr=0.1)
def gentle(gradient):
    HOOK
for step in range(4):
    x = torch.randn(8, 4)
    a, b = slow(x), fast(x)
    b.register_hook(gentle)
    optimizer.zero_grad()
    head(a + b).square().mean().backward()
    optimizer.step()
"""
CASES = {
    "in place": (PROGRAM.replace("HOOK", "gradient.mul_(0.1)"), "backward/hook-contract"),
    "a new one": (PROGRAM.replace("HOOK", "return gradient.mul(0.1)"), None),
}


@pytest.mark.parametrize(("source", "cause"), some_at_gate(CASES, ["in place"]))
def test_a_run_that_ends_well(source: str, cause: str | None, tmp_path: pathlib.Path) -> None:
    """It is told with the line of the function."""
    (tmp_path / "train.py").write_text(source)
    done, _ = run(tmp_path, "train.py")
    assert done.status == 0
    assert [one.line for one in done.processes[0].hooked] == ([7] if cause else [])
    assert (done.report.findings[0].cause if done.report is not None else None) == cause
