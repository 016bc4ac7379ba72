"""The tracer names what ties two steps together, and a loss that nothing was put into."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

import gradfix  # noqa: E402
from explainer.model.incident import Incident  # noqa: E402
from explainer.verification.live_report import with_live_objects  # noqa: E402
from tests.live.tracing import lines, shown, weight  # noqa: E402


def keep(bank: dict, value: torch.Tensor) -> None:
    bank["last"] = value * 2


def take(bank: dict) -> torch.Tensor:
    return bank["last"].sin()


def test_what_an_earlier_step_made_and_a_later_one_takes_up() -> None:
    """Both ends: where it was made for later, and where it came back; then the backward that used it up."""
    w, bank = weight(), {"last": torch.ones(3)}

    def step() -> None:
        for _ in range(2):
            hidden = take(bank) * w
            keep(bank, hidden)
            hidden.square().sum().backward()

    found = lines(step)
    assert shown(found) == [("carried", "mul", "keep"), ("taken", "sin", "take"), ("freed", "backward", "step")]


def first_task(hidden: torch.Tensor) -> torch.Tensor:
    return hidden.square().sum()


def second_task(hidden: torch.Tensor) -> torch.Tensor:
    return hidden.abs().sum()


def test_a_state_that_two_tasks_hand_on() -> None:
    """Each makes its loss by a line of its own, and one optimizer steps for both: the second one's step is no turn of the first's."""
    w, bank = torch.nn.Parameter(torch.ones(3)), {"last": torch.ones(3)}
    optimizer = torch.optim.SGD([w], lr=0.1)

    def step() -> None:
        for task in (first_task, second_task):
            hidden = take(bank) * w
            keep(bank, hidden)
            loss = task(hidden)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    assert [one.kind for one in lines(step)][:2] == ["carried", "taken"]


def test_a_loop_over_time_takes_up_its_own_step_too() -> None:
    """The line that takes up the old state runs on this step's as well: to cut there would cut the step's own graph.

    So does the one that made it: both are told as guesses, from which what keeps the state is found.
    """
    w, state = weight(), [torch.ones(3)]

    def step() -> None:
        for _ in range(2):
            hidden = state[0]
            for _ in range(3):
                hidden = (hidden * w).sin()
            state[0] = hidden
            hidden.sum().backward()

    assert [(one.kind, one.is_guess) for one in lines(step)] == [("carried", True), ("taken", True), ("freed", False)]


def test_what_was_made_once_for_all_steps_is_not_carried() -> None:
    """Each step takes it up on the same line: it is to be made anew, or cut where it was made."""
    w = weight()

    def step() -> None:
        features = w.exp()
        for _ in range(2):
            (features * 2).sum().backward()

    assert shown(lines(step)) == [("once", "mul", "step"), ("once-made", "exp", "step"), ("freed", "backward", "step")]


def test_what_a_network_made_for_a_target_is_no_state() -> None:
    """The same lines make each step's prediction: another argument of the loss than the target, which they made once."""
    w = weight()

    def network(x: torch.Tensor) -> torch.Tensor:
        return (x * w).sin()

    def step() -> None:
        target = network(torch.ones(3))
        for _ in range(2):
            torch.nn.functional.mse_loss(network(torch.zeros(3)), target).backward()

    found = lines(step)
    assert shown(found) == [
        ("once", "mse_loss", "step"),
        ("once-made", "sin", "network"),
        ("freed", "backward", "step"),
    ]


def test_two_losses_of_one_step_took_nothing_up() -> None:
    """The second was there when the first was differentiated: what they share was made in their own step."""
    w = weight()

    def step() -> None:
        hidden = w.exp()
        for loss in [hidden.sum(), hidden.square().sum()]:
            torch.autograd.grad(loss, w)

    assert [one.kind for one in lines(step)] == ["freed"]


def test_what_a_memory_holds_of_each_step_is_state() -> None:
    """A memory that each step fills before it reads it: its first entries too were made by a step."""
    w, memory = weight(), []

    def step() -> None:
        for _ in range(2):
            memory.append((torch.ones(3) * w).sin())
            torch.stack(memory).sum().backward()

    assert "once" not in [one.kind for one in lines(step)]


def test_a_loss_of_nothing() -> None:
    """A constant is named where it is made; a number that was logged behind the last backward has no part in it."""
    w = weight()

    def empty(rows: torch.Tensor) -> torch.Tensor:
        return torch.zeros(()) if not len(rows) else (rows * w).sum()

    def step() -> None:
        logged = []
        for count in (2, 0):
            loss = empty(torch.ones(count, 3))
            loss.backward()
            logged.append(loss.item())

    assert shown(lines(step)) == [("constant", "zeros", "empty")]


def facts_of(step) -> tuple[list[str], set[str]]:
    """The kinds of the lines that tie two steps together, and the facts of it."""
    with pytest.raises(RuntimeError, match="second time") as failed, gradfix.trace() as seen:
        step()
    kinds = [one.kind for one in seen.lines if one.kind in ("carried", "taken", "once")]
    facts = {one.name for one in with_live_objects(Incident(), failed.value).facts}
    return kinds, facts & {"traced_shared", "traced_state", "traced_once"}


@pytest.mark.parametrize("is_loop", [True, False])
def test_another_loss_of_the_same_forward(is_loop: bool) -> None:
    """It ties no steps together: no optimizer has stepped, and nothing that trains was read since the backward."""
    w = weight()
    optimizer = torch.optim.SGD([w], lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        hidden = torch.ones(3) * w.exp()
        if is_loop:
            for scale in (1.0, 2.0):
                (hidden.sin() * scale).sum().backward()
        hidden.sin().sum().backward()
        hidden.cos().sum().backward()
        optimizer.step()

    assert facts_of(step) == ([], {"traced_shared"})


def test_losses_that_each_have_a_weight_of_their_own() -> None:
    """A weight that no backward has trained yet makes no later step of a loss: the forward is the same."""
    w = weight()
    scales = [torch.nn.Parameter(torch.ones(())) for _ in range(2)]
    optimizer = torch.optim.SGD([w, *scales], lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        hidden = torch.ones(3) * w.exp()
        for scale in scales:
            (hidden.sin() * scale.exp()).sum().backward()

    assert facts_of(step) == ([], {"traced_shared"})


def test_what_was_made_once_while_gradients_add_up() -> None:
    """The weight that each batch reads again had its gradient in the first: what both share was made before them."""
    w, scale = weight(), torch.nn.Parameter(torch.ones(()))
    optimizer = torch.optim.SGD([w, scale], lr=0.1)

    def step() -> None:
        factor = scale.exp()
        for _ in range(2):
            (factor * (torch.ones(3) * w).exp().sum()).exp().backward()
        optimizer.step()

    kinds, facts = facts_of(step)
    assert (kinds, facts) == (["once"], {"traced_once"})


def test_a_forward_on_what_was_kept() -> None:
    """A step that reads the weight again takes up a state, whether an optimizer has stepped or not."""
    w = weight()

    def step() -> None:
        hidden = torch.ones(3)
        for _ in range(2):
            hidden = (hidden * w).exp()
            hidden.sum().backward()

    assert facts_of(step) == (["carried", "taken"], {"traced_state"})


def test_what_was_made_once_before_the_steps() -> None:
    """An optimizer has stepped between the two: each step takes up what was made before them."""
    w = weight()
    optimizer = torch.optim.SGD([w], lr=0.1)

    def step() -> None:
        hidden = torch.ones(3) * w.exp()
        for _ in range(2):
            optimizer.zero_grad()
            hidden.sin().sum().backward()
            optimizer.step()

    kinds, facts = facts_of(step)
    assert (kinds, facts) == (["once"], {"traced_once"})


def test_what_was_made_once_by_a_line_that_runs_again() -> None:
    """One network encodes an index once and each query: the index is no state, the line that reads it takes nothing of the later step."""
    w = weight()
    optimizer = torch.optim.SGD([w], lr=0.1)

    def encode(x: torch.Tensor) -> torch.Tensor:
        return (x * w).exp()

    def step() -> None:
        items = encode(torch.ones(3))
        for _ in range(2):
            optimizer.zero_grad()
            (encode(torch.full((3,), 2.0)) * items.flip(0)).sum().backward()
            optimizer.step()

    kinds, facts = facts_of(step)
    assert (kinds, facts) == (["once"], {"traced_once"})


@pytest.mark.parametrize("is_asked_alone", [True, False])
def test_what_used_the_graph_up_in_the_same_round(is_asked_alone: bool) -> None:
    """Another loss's backward is told; a gradient that was asked for by itself, as for a penalty, is no other loss."""
    w = weight()

    def step() -> None:
        scores = (torch.ones(3) * w).exp()
        if is_asked_alone:
            torch.autograd.grad(scores.sum(), [w])
        else:
            scores.sum().backward()
        scores.sin().sum().backward()

    with pytest.raises(RuntimeError, match="second time") as failed, gradfix.trace():
        step()
    facts = {one.name for one in with_live_objects(Incident(), failed.value).facts}
    assert ("traced_freed_in_round" in facts) == (not is_asked_alone)
