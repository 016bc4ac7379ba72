"""Where values leave the graph on the way to a loss: told by a trace that saw nothing wrong."""

from __future__ import annotations

import pathlib

import pytest

torch = pytest.importorskip("torch")

from explainer.live.trace import arm as tracing  # noqa: E402
from explainer.model.verification import ProcessReport  # noqa: E402
from explainer.verification.departures import departures_told  # noqa: E402

pytestmark = pytest.mark.torch


def told(step) -> list[str]:
    """The code of each place, of two steps in this process."""
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 3)
    tracer, undo = tracing.arm(torch)
    with undo:
        for _ in range(2):
            step(net, torch.randn(4, 3)).backward()
    process = ProcessReport(pid=1, traced=tracer.explain(None, ""))
    said = departures_told([process], str(pathlib.Path(__file__).parent))
    return [one.strip().partition("  ")[2] for one in said if one.startswith("  ")]


def through_numpy(net, x):
    steered = torch.from_numpy(net(x).detach().numpy().clip(-1, 1))
    return (net(x) * steered).mean()


def beside_the_loss(net, x):
    loss = net(x).pow(2).mean()
    float(loss.detach())
    return loss


def by_a_switch(net, x):
    with torch.no_grad():
        target = net(x) * 2
        target = target.softmax(-1)
    return (net(x) - target).pow(2).mean()


def by_a_choice(net, x):
    scores = net(x)
    return scores.gather(1, scores.argmax(1, keepdim=True)).mean()


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        (through_numpy, ["steered = torch.from_numpy(net(x).detach().numpy().clip(-1, 1))"]),
        (beside_the_loss, []),
        (by_a_switch, ["with torch.no_grad():"]),
        (by_a_choice, []),
    ],
    ids=["NumPy", "a log", "grad mode", "argmax"],
)
def test_the_places(step, wanted) -> None:
    """Each line once, a block of grad mode by its head; what the loss does not read and integers are no departures."""
    assert told(step) == wanted


def test_what_is_said() -> None:
    """That nothing was seen, and the places; of a process that was not traced nothing at all."""
    place = {"file": __file__, "line": through_numpy.__code__.co_firstlineno + 1, "operation": "detach", "off": None}
    process = ProcessReport(pid=1, traced={"departures": [place]})
    said = list(departures_told([process], str(pathlib.Path(__file__).parent)))
    assert said[0].startswith("nothing was seen")
    assert said[-1].startswith(f"  test_departures.py:{place['line']}  steered")
    assert list(departures_told([ProcessReport(pid=1, traced={"departures": []})], "."))[-1].startswith("no value")
    assert not list(departures_told([ProcessReport(pid=1)], "."))


def test_a_program_without_a_backward() -> None:
    """It has no loss that anything could be on the way to: nothing is said."""
    tracer, undo = tracing.arm(torch)
    with undo:
        torch.nn.Linear(3, 3)(torch.randn(2, 3)).detach()
        process = ProcessReport(pid=1, traced=tracer.explain(None, ""))
    assert not list(departures_told([process], "."))
