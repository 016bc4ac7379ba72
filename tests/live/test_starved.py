"""The tracer names what keeps parameters of an optimizer from ever getting a gradient, though nothing raises."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable

import numpy as np
import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

import gradfix  # noqa: E402
from explainer.model.trace import TracedLine  # noqa: E402
from tests.live.tracing import lines, shown  # noqa: E402


def two_stage(cut: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], None]:
    """A program of two parts, both the optimizer's, with something between them."""
    encoder, head, teacher = (torch.nn.Linear(3, 3) for _ in range(3))
    optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)

    def train() -> None:
        for _ in range(3):
            x = torch.randn(2, 3)
            with torch.no_grad():
                target = teacher(x)
            loss = (head(cut(encoder(x))) - target).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            float(loss.detach())

    return train


def test_several_cuts_that_starve_the_same_parameters() -> None:
    """Each is told, and as a guess: taking any of them away would feed the part, and only one of them is not meant."""
    encoder, head = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)

    def train() -> None:
        for _ in range(3):
            x = torch.randn(2, 3)
            hidden = encoder(x)
            near = (head(x) - hidden.detach()).square().mean()
            far = (head(-x) + hidden.detach()).square().mean()
            optimizer.zero_grad()
            (near + far).backward()
            optimizer.step()

    found = lines(train, fails=False)
    assert [(one.kind, one.operation, one.is_guess) for one in found] == [("starving-cut", "detach", True)] * 2
    first, second = sorted(one.line for one in found)
    assert second - first == 1


@pytest.mark.parametrize(("is_reentrant", "kinds"), [(False, {"starving-cut", "starving-off"}), (True, set())])
def test_a_block_without_grad_inside_a_checkpoint(is_reentrant: bool, kinds: set[str]) -> None:
    """The program's own switch starves what stands before it; the first pass of a reentrant segment, without one, starves nothing."""
    from torch.utils.checkpoint import checkpoint

    prompt, tower, head = (torch.nn.Linear(3, 3) for _ in range(3))
    tower.requires_grad_(False)
    optimizer = torch.optim.SGD([*prompt.parameters(), *head.parameters()], lr=0.1)

    def frozen(x: torch.Tensor) -> torch.Tensor:
        if is_reentrant:
            return tower(x)
        with torch.no_grad():
            return tower(x)

    def train() -> None:
        for _ in range(3):
            loss = head(checkpoint(frozen, prompt(torch.randn(2, 3)), use_reentrant=is_reentrant)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    assert {one.kind for one in lines(train, fails=False)} == kinds


def test_a_cut_that_starves_parameters() -> None:
    """Half of what the optimizer owns never gets a gradient: the line that keeps it from there."""
    found = lines(two_stage(lambda hidden: hidden.detach().relu()), fails=False)
    assert [(one.kind, one.operation) for one in found] == [("starving-cut", "detach")]
    assert "2 parameters of the optimizer" in found[0].says


def test_a_network_that_runs_for_each_term_of_a_loss() -> None:
    """The head of the term that is cut is run again for the next one, where nothing takes what it gives."""
    trunk, first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD([*trunk.parameters(), *first.parameters(), *second.parameters()], lr=0.1)

    def network(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = trunk(x)
        return first(hidden), second(hidden)

    def train() -> None:
        for _ in range(3):
            x = torch.randn(2, 3)
            loss = network(x)[0].square().mean().data / 2
            loss = loss + network(x)[1].square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    found = lines(train, fails=False)
    assert [(one.kind, one.operation) for one in found] == [("starving-cut", "data")]


def test_a_padding_row_that_is_zeroed() -> None:
    """A view that is written with grad mode off, which torch does not let us ask for its node, is no fault of ours."""
    from explainer.live.trace.tracer import Tracer

    made: list[Tracer] = []
    with gradfix.trace():
        table = torch.nn.Embedding(10, 4, padding_idx=0)
        table(torch.tensor([1, 2])).sum().backward()
        made += [one for one in gc.get_objects() if isinstance(one, Tracer)]
    assert made
    assert [one.fault for one in made if one.fault] == []


def test_a_program_of_two_parts_in_order() -> None:
    """A teacher under no_grad that no optimizer owns, and a loss that is detached for the log, are as they should be."""
    assert lines(two_stage(lambda hidden: hidden.relu()), fails=False) == ()


def masked(write: Callable[[torch.Tensor, torch.Tensor], object]) -> Callable[[], None]:
    """A program that fills a parameter into what a layer made, and prints the parameter."""
    layer, head, token = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1), torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters(), token], lr=0.1)

    def train() -> None:
        for _ in range(3):
            hidden = layer(torch.randn(4, 3))
            write(hidden, token)
            optimizer.zero_grad()
            head(hidden).square().mean().backward()
            optimizer.step()
            token.data.norm()

    return train


def test_a_parameter_written_through_an_alias() -> None:
    """The write through `.data` is named, not the printing; a write that autograd sees is none, nor one into a copy."""

    def hide(hidden: torch.Tensor, token: torch.Tensor) -> None:
        hidden.data[:2] = token

    found = lines(masked(hide), fails=False)
    assert shown(found) == [("starving-cut", "__setitem__", "hide")]
    assert "through an alias" in found[0].says
    assert lines(masked(lambda hidden, token: hidden.__setitem__(0, token)), fails=False) == ()
    assert lines(masked(lambda hidden, token: hidden.data.clone().__setitem__(0, token)), fails=False) == ()


def test_a_sum_that_is_filled_through_an_alias() -> None:
    """What is computed of the tensor behind the alias meets the graph only in the next layer."""

    def pooled(hidden: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(2, 3)
        total.data.index_add_(0, torch.tensor([0, 1]), hidden)
        return total / 2

    assert shown(lines(two_stage(pooled), fails=False)) == [("starving-cut", "index_add_", "pooled")]


def quantised(round_: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], None]:
    """A program whose weight is rounded before it is used, beside a head that trains."""
    weight, head = torch.nn.Parameter(torch.randn(3, 3)), torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD([weight, *head.parameters()], lr=0.1, weight_decay=0.01)

    def train() -> None:
        for _ in range(4):
            loss = head(torch.randn(4, 3) @ round_(weight).T).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return train


@pytest.mark.parametrize("name", ["round", "floor", "ceil", "trunc", "sign"])
def test_a_gradient_of_zero(name: str) -> None:
    """What stands before it gets zeros in every step; the scale, which is detached on purpose, is no cut."""

    def hard(weight: torch.Tensor) -> torch.Tensor:
        scale = weight.detach().abs().max() / 7
        return getattr(torch, name)(weight / scale) * scale

    found = lines(quantised(hard), fails=False)
    assert shown(found) == [("starving-cut", name, "hard")]
    assert "a gradient of 0" in found[0].says


def test_a_gradient_that_is_passed_on() -> None:
    """A straight-through estimator rounds too, and a metric that rounds is none of the loss's business."""

    def soft(weight: torch.Tensor) -> torch.Tensor:
        weight.round().abs().mean()
        return weight + (weight.round() - weight).detach()

    assert lines(quantised(soft), fails=False) == ()
    assert lines(quantised(lambda weight: weight), fails=False) == ()


def test_a_parameter_written_with_grad_mode_off() -> None:
    """The write is named, and the line that switched grad mode off."""

    def hide(hidden: torch.Tensor, token: torch.Tensor) -> None:
        with torch.no_grad():
            hidden[:2] = token

    found = lines(masked(hide), fails=False)
    assert [one.kind for one in found] == ["starving-cut", "starving-off"]
    assert found[0].line == found[1].line + 1


def test_an_average_that_is_kept_by_hand() -> None:
    """A copy that the optimizer owns by mistake, and that the program itself moves, is no parameter that should train."""
    layer, slow = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD([*layer.parameters(), *slow.parameters()], lr=0.1)

    def train() -> None:
        for _ in range(3):
            x = torch.randn(2, 3)
            with torch.no_grad():
                target = slow(x)
            (layer(x) - target).square().mean().backward()
            optimizer.step()
            with torch.no_grad():
                for one, other in zip(slow.parameters(), layer.parameters(), strict=True):
                    one.lerp_(other, 0.1)

    assert lines(train, fails=False) == ()


def squares_of(hidden: torch.Tensor) -> np.ndarray:
    return np.square(hidden.detach().numpy())


def tensor_of(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array)


WAYS = {
    "an array": lambda hidden: torch.from_numpy(np.square(hidden.detach().cpu().numpy())),
    "an array that is copied": lambda hidden: torch.tensor(np.square(np.asarray(hidden.detach()))),
    "an array of a helper": lambda hidden: tensor_of(squares_of(hidden)),
    "a number": lambda hidden: torch.ones(2, 3) * torch.tensor(math.exp(hidden.mean().item())),
    "a list": lambda hidden: torch.tensor([[abs(one) for one in row] for row in hidden.detach().tolist()]),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_values_that_leave_torch_and_come_back(way: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """NumPy computes between the two: the line that took them out is told."""
    found = lines(two_stage(way), fails=False)
    assert [(one.kind, one.operation) for one in found] == [
        ("starving-cut", "item" if way is WAYS["a number"] else "detach")
    ]


def kept(rows: list[np.ndarray], values: torch.Tensor) -> None:
    rows.append(values.detach().numpy())


def test_values_that_leave_torch_at_the_end_of_a_loop() -> None:
    """A head is only plotted, last in each step; the next batch, first in the next one, is not made of that."""
    encoder, head, plotted = (torch.nn.Linear(3, 3) for _ in range(3))
    optimizer = torch.optim.SGD(torch.nn.ModuleList([encoder, head, plotted]).parameters(), lr=0.1)

    def train() -> None:
        rows, losses = [], []
        for _ in range(4):
            x = tensor_of(np.ones((2, 3), np.float32))
            hidden = encoder(x)
            loss = head(hidden).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            kept(rows, plotted(x))
            losses.append(plotted(x).mean().item())

    assert lines(train, fails=False) == ()


def test_values_that_leave_torch_for_good() -> None:
    """A head whose results are only plotted trains nothing; data that is made next to it comes from elsewhere."""
    encoder, head, plotted = (torch.nn.Linear(3, 3) for _ in range(3))
    parts = torch.nn.ModuleList([encoder, head, plotted])
    optimizer = torch.optim.SGD(parts.parameters(), lr=0.1)

    def train() -> None:
        for _ in range(3):
            hidden = encoder(torch.from_numpy(np.ones((2, 3), np.float32)))
            np.abs(plotted(hidden).detach().numpy()).sum()
            loss = head(hidden).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    assert lines(train, fails=False) == ()


def test_what_runs_behind_the_last_step() -> None:
    """The helper that starves the part in its update is the one that evaluates it afterwards, where it is in order."""
    actor, critic = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (actor, critic)]

    @torch.no_grad()
    def act(x: torch.Tensor) -> torch.Tensor:
        return actor(x)

    def train() -> None:
        for _ in range(3):
            loss = -critic(act(torch.randn(2, 3))).mean()
            loss.backward()
            for one in optimizers:
                one.step()
                one.zero_grad()
        for _ in range(4):
            act(torch.randn(2, 3)).mean()

    found = lines(train, fails=False)
    assert [(one.kind, one.function) for one in found] == [("starving-cut", "act"), ("starving-off", "act")]


def test_a_model_that_is_gone_by_the_end() -> None:
    """The function that made and trained it is over when the trace is asked what it saw."""

    def main() -> None:
        two_stage(lambda hidden: hidden.detach())()

    assert shown(lines(main, fails=False)) == [("starving-cut", "detach", "<lambda>")]


def test_weights_that_another_network_makes() -> None:
    """Set by `.data` into a layer, all of them: none of the lines is a guess, for all have to go."""

    def main() -> None:
        maker, layer = torch.nn.Linear(3, 8), torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD([*maker.parameters(), *layer.parameters()], lr=0.1)
        for _ in range(3):
            made = maker(torch.randn(3))
            layer.weight.data = made[:6].view(2, 3)
            layer.bias.data = made[6:]
            optimizer.zero_grad()
            layer(torch.randn(4, 3)).square().mean().backward()
            optimizer.step()

    found = lines(main, fails=False)
    assert [(one.kind, one.operation, one.is_guess) for one in found] == [("starving-cut", "data =", False)] * 2


def cut_student(*, frozen: bool = False, cut: bool = True) -> Callable[[], None]:
    """A program that reads the gradients of a part before its first step; the part is cut off, or frozen on purpose."""
    student, head = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    student.requires_grad_(not frozen)
    kept: dict[str, torch.Tensor] = {}
    student.register_forward_hook(
        lambda *given: kept.update(out=given[2].detach()) if cut else kept.update(out=given[2])
    )

    def train() -> None:
        optimizer = torch.optim.SGD([*student.parameters(), *head.parameters()], lr=0.1)
        student(torch.randn(2, 3))
        loss = head(kept["out"]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        norm = torch.stack([one.grad.norm() for one in student.parameters()]).norm()  # type: ignore[union-attr]
        print(float(norm))

    return train


def traced(program: Callable[[], None]) -> tuple[TracedLine, ...]:
    """What tracing a program shows that fails of a gradient which is None."""
    with pytest.raises(AttributeError, match="NoneType"), gradfix.trace() as seen:
        program()
    return seen.lines


def test_a_gradient_that_is_read_before_the_first_step() -> None:
    """The program fails of a gradient that is None: the cut is told, as it would be after some steps."""
    (found,) = (one for one in traced(cut_student()) if one.kind == "starving-cut")
    assert (found.operation, found.says) == (
        "detach", "`detach` keeps 2 parameters of the optimizer from ever getting a gradient",
    )  # fmt: skip


def test_frozen_parameters_are_not_starved() -> None:
    """A frozen part has no gradient to be cut off from."""
    assert [one for one in traced(cut_student(frozen=True, cut=False)) if one.kind == "starving-cut"] == []


def written_student(*, cleared: bool) -> Callable[[], None]:
    """A program whose optimizer owns what computes a network's weights; these are copied, or go into the loss and are cleared."""
    maker, net = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1, bias=False)

    def train() -> None:
        optimizer = torch.optim.SGD(maker.parameters(), lr=0.1)
        made = maker(torch.randn(3)).view(1, 3)
        with torch.no_grad():
            net.weight.copy_(made)
        x = torch.randn(4, 3)
        loss = (x @ made.t() if cleared else net(x)).square().mean()
        loss.backward()
        if cleared:
            optimizer.zero_grad()
        print(float(maker.weight.grad.norm()))  # type: ignore[union-attr]

    return train


@pytest.mark.parametrize("cleared", [False, True])
def test_no_parameter_has_a_gradient_behind_a_backward(cleared: bool) -> None:
    """Values that are copied leave the graph behind; gradients that were cleared had a way."""
    found = [one.says for one in traced(written_student(cleared=cleared)) if one.kind == "starving-cut"]
    says = "`copy_` keeps 2 parameters of the optimizer from ever getting a gradient"
    assert found == ([] if cleared else [says])
