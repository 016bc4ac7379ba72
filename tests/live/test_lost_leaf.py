"""The gradient of a result is read whose leaf nothing holds: it stays None, and a helper may take that for zeros."""

from __future__ import annotations

import contextlib
import pathlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:The .grad attribute")]
torch = pytest.importorskip("torch")

from explainer.fix.splice import splice  # noqa: E402
from tests.fix.rewriting import best, changed_lines, failed, write  # noqa: E402
from tests.live.tracing import lines  # noqa: E402

NET = torch.nn.Linear(3, 2)


def pulled(tensor: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(tensor) if tensor.grad is None else tensor.grad


def loss_of(noise: torch.Tensor) -> torch.Tensor:
    return NET(torch.ones(2, 3) + noise).square().sum()


def scaled() -> None:
    noise = 0.1 * torch.empty(2, 3).uniform_(-1, 1).requires_grad_()
    loss_of(noise).backward()
    pulled(noise)


def cast() -> None:
    noise = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True).float()
    loss_of(noise).backward()
    pulled(noise)


def bound_anew() -> None:
    noise = torch.randn(2, 3, requires_grad=True)
    noise = noise.clamp(-0.1, 0.1)
    loss_of(noise).backward()
    pulled(noise)


def start() -> torch.Tensor:
    noise = torch.randn(2, 3)
    noise.requires_grad = True
    return noise / noise.detach().norm()


def made_elsewhere() -> None:
    noise = start()
    loss_of(noise).backward()
    pulled(noise)


class Attack:
    def __init__(self) -> None:
        self.noise = torch.rand(2, 3, requires_grad=True).mul(2).sub(1)

    def __call__(self) -> None:
        loss_of(self.noise).backward()
        pulled(self.noise)


def kept_by_an_object() -> None:
    Attack()()


def in_the_second_round() -> None:
    noise = torch.zeros(2, 3, requires_grad=True)
    for _ in range(2):
        loss_of(noise).backward()
        noise = noise - 0.1 * pulled(noise)


def leaf_itself() -> None:
    noise = (0.1 * torch.randn(2, 3)).requires_grad_()
    loss_of(noise).backward()
    assert pulled(noise).any()


def retained() -> None:
    noise = 0.1 * torch.randn(2, 3, requires_grad=True)
    noise.retain_grad()
    loss_of(noise).backward()
    assert pulled(noise).any()


def hooked() -> None:
    noise, kept = 0.1 * torch.randn(2, 3, requires_grad=True), []
    noise.register_hook(kept.append)
    loss_of(noise).backward()
    pulled(noise)


def leaf_held() -> None:
    base = torch.randn(2, 3, requires_grad=True)
    noise = 0.1 * base
    loss_of(noise).backward()
    pulled(noise)
    assert base.grad is not None


def activations() -> None:
    hidden = NET(torch.ones(2, 3))
    hidden.square().sum().backward()
    pulled(hidden)


def logger() -> None:
    noise = 0.1 * torch.randn(2, 3, requires_grad=True)
    loss = loss_of(noise)
    loss.backward()
    assert sum(one.grad is not None for one in [noise, loss, *NET.parameters()]) == len(list(NET.parameters()))


def logger_of_inputs() -> None:
    image, noise = torch.ones(2, 3), 0.1 * torch.randn(2, 3, requires_grad=True)
    loss_of(image + noise).backward()
    assert not any(one.grad is not None for one in [image, noise])


def before_the_backward() -> None:
    noise = 0.1 * torch.randn(2, 3, requires_grad=True)
    pulled(noise)
    loss_of(noise).backward()


def by_autograd_grad() -> None:
    noise = 0.1 * torch.randn(2, 3, requires_grad=True)
    torch.autograd.grad(loss_of(noise), noise)
    pulled(noise)


def learned_scale() -> None:
    scale = torch.nn.Parameter(torch.tensor(0.1))
    noise = scale * torch.randn(2, 3, requires_grad=True)
    loss_of(noise).backward()
    pulled(noise)


def of_a_module_that_is_gone() -> None:
    noise = torch.nn.Embedding(2, 3)(torch.arange(2))
    loss_of(noise).backward()
    pulled(noise)


LOST = [scaled, cast, bound_anew, made_elsewhere, kept_by_an_object, in_the_second_round]
FINE = [
    leaf_itself, retained, hooked, leaf_held, activations, logger, logger_of_inputs, before_the_backward, by_autograd_grad,
    learned_scale, of_a_module_that_is_gone,
]  # fmt: skip
WHERE = {"made_elsewhere": "start", "kept_by_an_object": "__init__"}


@pytest.mark.parametrize("step", FINE)
def test_none_is_expected_or_not_read(step: Callable[[], None]) -> None:
    """A leaf, a gradient that is kept or taken by a hook, a logger that reads all tensors, activations, no backward."""
    assert lines(step, fails=False) == ()


@pytest.mark.parametrize("step", LOST)
def test_the_line_that_makes_the_result_is_told(step: Callable[[], None]) -> None:
    """The line is that of the operation on the leaf; where the gradient is read stands in its words."""
    (found,) = lines(step, fails=False)
    assert (found.kind, found.function) == ("lost-leaf", WHERE.get(step.__name__, step.__name__))
    assert "test_lost_leaf.py" in found.says


def test_a_library_may_read_what_it_likes(tmp_path: pathlib.Path) -> None:
    """The code that reads is not the program's."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    space: dict = {}
    source = "def look(tensor):\n    return tensor.grad\n"
    exec(compile(source, str(folder / "tool.py"), "exec"), space)  # noqa: S102

    def step() -> None:
        noise = 0.1 * torch.randn(2, 3, requires_grad=True)
        loss_of(noise).backward()
        space["look"](noise)

    assert lines(step, fails=False) == ()


SOURCE = """import torch


class Start:
    def __init__(self, radius):
        self.radius = radius

    def __call__(self, images):
        torch.manual_seed(0)
        noise = self.radius * torch.empty_like(images).uniform_(-1, 1).requires_grad_()
        (images + noise).square().sum().backward()
        return direction(noise)


def direction(t):
    g = t.grad
    return torch.zeros_like(t) if g is None else g.sign()


found = Start(0.1)(torch.ones(2, 3))
"""


@contextlib.contextmanager
def traced() -> Iterator[object]:
    import gradfix

    with warnings.catch_warnings(), gradfix.trace() as seen:
        warnings.simplefilter("ignore")
        yield seen


def test_the_flag_is_set_last(tmp_path: pathlib.Path) -> None:
    """The result becomes the leaf, at the traced line, though a helper elsewhere reads its gradient."""
    path, space = tmp_path / "train.py", {}
    path.write_text(SOURCE)
    with traced() as seen:
        exec(compile(SOURCE, str(path), "exec"), space)  # noqa: S102
    assert not space["found"].any()
    incident = replace(failed(), traced=seen.lines)
    proposal = best("make_leaf_last", write(tmp_path, {"train.py": SOURCE}), incident=incident)
    assert proposal is not None
    after = splice(SOURCE, proposal.edits)
    wanted = "noise = (self.radius * torch.empty_like(images).uniform_(-1, 1)).requires_grad_(True)"
    assert changed_lines(SOURCE, after) == [wanted]
    path.write_text(after)
    with traced() as seen:
        exec(compile(after, str(path), "exec"), space)  # noqa: S102
    assert space["found"].all()
    assert seen.lines == ()
