"""The live objects name what the message cannot: the tensor that moved, the modes, the parameters that train."""

from __future__ import annotations

import pytest

from explainer.model.incident import Incident

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


def test_the_names_of_a_model_of_which_nothing_trains() -> None:
    """Where all is frozen, or an optimizer is given nothing, the model's own names are told; else they are not."""
    import torch

    model = torch.nn.ModuleDict({"net": torch.nn.Linear(3, 1)})

    def step(parameters):
        try:
            torch.optim.SGD(parameters, lr=0.1)
        except ValueError as error:
            raise RuntimeError(str(error)) from error
        model["net"](torch.ones(2, 3)).sum().backward()

    assert facts(lambda: step([]))["live_parameter_names"] == "net.bias net.weight"
    model.requires_grad_(False)
    assert facts(lambda: step(model.parameters()))["live_parameter_names"] == "net.bias net.weight"
    model.requires_grad_(True)
    loss = model["net"](torch.ones(2, 3)).sum()
    loss.backward()
    assert "live_parameter_names" not in facts(loss.square().backward)


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


def test_one_of_several_views_whose_base_was_written() -> None:
    """Torch refuses to unpack it with words of its own; the tensor has moved all the same."""
    import torch

    torch.manual_seed(0)
    states = torch.empty(2, 3)
    states[0] = torch.rand(3, requires_grad=True) * 2
    first, second, _ = states[0].unbind(0)
    states[1] = first * second
    with pytest.raises(RuntimeError, match="another view of its base"):
        states.sum().backward()
    assert facts(states.sum().backward)["live_moved_local"].startswith("states in ")


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


def test_methods_of_another_hand_in_evaluation() -> None:
    """A replaced forward is told with who wrote it; in evaluation mode it is a fact of its own, for wrappers it is none."""
    import functools

    import torch

    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
    plain = model[0].forward
    model[0].forward = lambda x: plain(x)
    found = facts(model.train()(torch.ones(2, 3)).sum().detach().backward)
    assert found["live_replaced"] == "Linear.forward"
    assert "live_replaced_in_evaluation" not in found
    found = facts(model.eval()(torch.ones(2, 3)).sum().detach().backward)
    assert found["live_replaced_in_evaluation"].startswith("Linear.forward of tests")
    model[0].forward = functools.partial(torch.nn.Linear.forward, model[0])
    assert "live_replaced_in_evaluation" not in facts(model(torch.ones(2, 3)).sum().detach().backward)


def test_checkpointing_that_is_on() -> None:
    """A module that was told to checkpoint, as transformers tells it, and whether in the reentrant form."""
    import functools

    import torch
    from torch.utils.checkpoint import checkpoint

    model = torch.nn.Linear(3, 1)
    model.gradient_checkpointing, model._gradient_checkpointing_func = True, functools.partial(checkpoint)
    found = facts(model(torch.ones(2, 3)).sum().detach().backward)
    assert (found["live_checkpointed"], "live_reentrant" in found) == ("Linear", False)
    model._gradient_checkpointing_func = functools.partial(checkpoint, use_reentrant=True)
    assert facts(model(torch.ones(2, 3)).sum().detach().backward)["live_reentrant"] == "Linear"


def test_warnings_that_were_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A live exception comes with the warnings that Python has shown, and the forward call that anomaly mode named."""
    import torch.utils.checkpoint

    from explainer.verification.live_report import with_live_objects

    told = 'Error detected in ExpBackward0. Traceback of forward call that caused the error:\n  File "train.py", line 3, in f\n    y = x.exp()\n'
    shown = {
        "version": 1,
        ("None of the inputs have requires_grad=True", UserWarning, 238): True,
        (told, UserWarning, 9): True,
    }
    monkeypatch.setattr(torch.utils.checkpoint, "__warningregistry__", shown, raising=False)
    with pytest.raises(RuntimeError) as failed:
        torch.ones(2).sum().backward()
    incident = with_live_objects(Incident(), failed.value)
    (warning,) = [one for one in incident.warnings if "None of the inputs" in one.message]
    assert (warning.library, warning.line, warning.category) == ("torch", 238, "UserWarning")
    assert (incident.anomaly_node, incident.forward_frames[0].line) == ("ExpBackward0", 3)


def test_what_is_trained_through_a_frozen_model() -> None:
    """A frozen model is no fault where an input is trained, and it is another one where it carries an adapter."""
    import torch

    model = torch.nn.Linear(3, 1).requires_grad_(False)
    image = torch.ones(2, 3, requires_grad=True)

    def attack(image=image):
        model(image).detach().sum().backward()

    found = facts(attack)
    assert (found["live_flagged"], "live_trainable" in found) == ("image", False)
    model.peft_config = {"old": None, "new": None}
    found = facts(model(torch.ones(2, 3)).sum().backward)
    assert (found["live_frozen_adapter"], "live_trainable" in found) == ("new, old", False)
