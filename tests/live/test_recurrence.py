"""Recurrences whose state is cut between all of their steps, and those that are meant as they are."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import gradfix  # noqa: E402
from explainer.model.trace import CUT_STATE  # noqa: E402

pytestmark = pytest.mark.torch

STEPS, ROWS, WIDTH = 6, 3, 5


class Plain(torch.nn.Module):
    """A recurrence written out, with a head."""

    def __init__(self) -> None:
        super().__init__()
        self.of_input, self.of_state = torch.nn.Linear(2, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.head = torch.nn.Linear(WIDTH, 2)

    def forward(self, x, h):
        return torch.tanh(self.of_input(x) + self.of_state(h))


def each_step(net, x, h):
    outputs = []
    for t in range(STEPS):
        h = net(x[:, t], h.detach())
        outputs.append(net.head(h))
    return torch.stack(outputs, 1)


def behind_the_step(net, x, h):
    states = []
    for t in range(STEPS):
        h = net(x[:, t], h)
        states.append(h)
        h = h.detach()
    return net.head(torch.stack(states, 1))


def by_data(net, x, h):
    total = 0.0
    for t in range(STEPS):
        h = net(torch.cat([x[:, t]], -1), h)
        total = total + net.head(h)
        h = h.data
    return total


def two_sequences(net, x, h):
    return each_step(net, x, h) + each_step(net, -x, h)


def joined(net, x, h):
    outputs = []
    for t in range(STEPS):
        h = net(x[:, t], h)
        outputs.append(net.head(h))
    return torch.stack(outputs, 1)


def by_windows(net, x, h):
    outputs = []
    for t in range(STEPS):
        if t % 3 == 0:
            h = h.detach()
        h = net(x[:, t], h)
        outputs.append(net.head(h))
    return torch.stack(outputs, 1)


def fed_with_its_output(net, x, h):
    outputs, last = [], x[:, 0]
    for _ in range(STEPS):
        h = net(last, h)
        outputs.append(net.head(h))
        last = outputs[-1].detach()
    return torch.stack(outputs, 1)


def beside_a_memory(net, x, h):
    """The state is cut, and what is kept of all steps leads from one to the next."""
    outputs, kept = [], torch.zeros(ROWS, WIDTH)
    for t in range(STEPS):
        h = net(x[:, t], h.detach() + kept)
        kept = kept + h
        outputs.append(net.head(h))
    return torch.stack(outputs, 1)


def own_predictions(net, x, _):
    """A network that steps a system on: the loss reads each prediction, which is cut before the next."""
    state, outputs = x[:, 0], []
    for _ in range(STEPS):
        state = state.detach() + net.head(torch.tanh(net.of_input(state)))
        outputs.append(state)
    return torch.stack(outputs, 1)


def few_passes(net, x, h):
    """Three rounds of refinement."""
    outputs = []
    for _ in range(3):
        h = net(x[:, 0], h.detach())
        outputs.append(net.head(h))
    return torch.stack(outputs, 1)


def last_alone(net, x, h):
    """Rounds to a fixed point, of which the last has the gradient."""
    for t in range(STEPS):
        h = net(x[:, t], h.detach())
    return net.head(h)


def lines_of(forward, *, steps=2):
    torch.manual_seed(0)
    net = Plain()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    x = torch.randn(ROWS, STEPS, 2)
    with gradfix.trace() as trace:
        for _ in range(steps):
            optimizer.zero_grad()
            forward(net, x, torch.zeros(ROWS, WIDTH)).pow(2).mean().backward()
            optimizer.step()
    return [one for one in trace.lines if one.kind == CUT_STATE]


@pytest.mark.parametrize(
    ("forward", "operation"),
    [(each_step, "detach"), (behind_the_step, "detach"), (by_data, "data"), (two_sequences, "detach")],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_a_state_that_is_cut_at_each_step(forward, operation) -> None:
    """The line that cuts, and what it does there."""
    (line,) = lines_of(forward)
    inner = each_step if forward is two_sequences else forward
    first = inner.__code__.co_firstlineno
    with open(line.file, encoding="utf-8") as file:
        code = file.readlines()[line.line - 1]
    assert line.operation == operation
    assert line.function == inner.__name__
    assert first < line.line
    assert operation in code


@pytest.mark.parametrize(
    "forward",
    [joined, by_windows, fed_with_its_output, beside_a_memory, own_predictions, few_passes, last_alone],
    ids=lambda one: one.__name__,
)
def test_what_is_meant(forward) -> None:
    """Windows, a second way, predictions, a few rounds, and rounds of which one counts."""
    assert lines_of(forward) == []


@pytest.mark.parametrize("cell", ["LSTMCell", "GRUCell", "RNNCell"])
def test_cells_of_torch(cell: str) -> None:
    """Whose state the loss may read as it is: it is no prediction."""
    torch.manual_seed(0)
    net = getattr(torch.nn, cell)(2, WIDTH)
    x = torch.randn(ROWS, STEPS, 2)
    with gradfix.trace() as trace:
        state, total = None, 0.0
        for t in range(STEPS):
            state = net(x[:, t], state)
            total = total + (state[0] if cell == "LSTMCell" else state).sum()
            state = tuple(one.detach() for one in state) if cell == "LSTMCell" else state.detach()
        total.backward()
    assert [one.operation for one in trace.lines if one.kind == CUT_STATE] == ["detach"]


def test_steps_with_a_backward_each() -> None:
    """Learning online: no backward goes through more than one step."""
    torch.manual_seed(0)
    net = Plain()
    x = torch.randn(ROWS, STEPS, 2)
    with gradfix.trace() as trace:
        h = torch.zeros(ROWS, WIDTH)
        for t in range(STEPS):
            h = net(x[:, t], h.detach())
            net.head(h).sum().backward()
    assert [one for one in trace.lines if one.kind == CUT_STATE] == []


def test_a_window_that_trains_through_its_steps() -> None:
    """Where one graph is joined on the same line the cut is a choice of the program's."""
    torch.manual_seed(0)
    net = Plain()
    x = torch.randn(ROWS, STEPS, 2)
    with gradfix.trace() as trace:
        for is_cut in (True, False):
            h, total = torch.zeros(ROWS, WIDTH), 0.0
            for t in range(STEPS):
                h = net(x[:, t], h.detach() if is_cut else h)
                total = total + net.head(h).sum()
            total.backward()
    assert [one for one in trace.lines if one.kind == CUT_STATE] == []
