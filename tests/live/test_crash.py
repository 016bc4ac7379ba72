"""The live objects name what the message cannot: the tensor that moved, the modes, the parameters that train."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def _torch():
    pytest.importorskip("torch")


def facts(step) -> dict[str, str]:
    """What is seen when `step` fails."""
    from explainer.live.crash import look
    from explainer.verification.live_report import facts_of

    with pytest.raises(RuntimeError) as failed:
        step()
    return dict(facts_of(look(failed.value)))


def test_a_parameter_that_was_stepped() -> None:
    """A weight that the optimizer changed between forward and backward is named by its module path."""
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first, second = model(torch.ones(2, 3)).sum(), model(torch.ones(2, 3)).square().sum()
    first.backward()
    optimizer.step()
    assert facts(second.backward)["live_moved_parameter"] == "Sequential.2.weight"


def test_a_buffer_that_was_written() -> None:
    """A buffer is named, and told from a parameter."""
    import torch

    class Scale(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(3, 3)
            self.register_buffer("scale", torch.ones(3))

        def forward(self, x):
            return self.fc(x) * self.scale

    model = Scale()
    loss = model(torch.ones(2, 3)).sum()
    model.scale.mul_(2)
    found = facts(loss.backward)
    assert found["live_moved_buffer"] == "Scale.scale"
    assert "live_moved_parameter" not in found


def test_an_activation_that_was_overwritten() -> None:
    """A tensor that no module holds is an activation, told with the operation that saved it."""
    import torch

    x = torch.ones(3, requires_grad=True)
    loss = (x * 2).exp().add_(1).sum()
    assert facts(loss.backward)["live_moved_activation"] == "saved by Exp"


def test_modes_and_parameters() -> None:
    """Frozen parameters and grad mode are facts."""
    import torch

    model = torch.nn.Linear(3, 1).requires_grad_(False)
    found = facts(model(torch.ones(2, 3)).sum().backward)
    assert (found["live_trainable"], found["live_loss_requires_grad"]) == ("0", "no")
    del model
    with torch.no_grad():
        assert facts((torch.ones(2, requires_grad=True) * 2).sum().backward)["live_grad_enabled"] == "no"


def test_values_are_never_read() -> None:
    """A tensor whose values cannot be had is described all the same."""
    import torch

    from explainer.live.crash import look

    tensor = torch.empty(3, device="meta", requires_grad=True)
    with pytest.raises(RuntimeError) as failed:
        (tensor * 2).backward()
    assert look(failed.value)["loss"]["device"] == "meta"
