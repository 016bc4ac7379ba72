"""Two losses of one forward: the second backward fills its own network's gradients, and steps come last."""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import pytest

from tests.fix.rewriting import best, failed, line_of, rewritten, write

HEAD = """import torch
from torch import nn

torch.manual_seed(0)
actor, critic = nn.Linear(3, 2), nn.Linear(2, 1)
opt_actor = torch.optim.SGD(actor.parameters(), lr=0.1)
opt_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
x = torch.randn(4, 3)
seen = []
"""
STEP = """for _ in range(2):
    wrong = (critic(actor(x).detach()) - 1).square().mean()
    value = -critic(actor(x)).square().mean()
    opt_critic.zero_grad()
    wrong.backward()
    opt_critic.step()
    opt_actor.zero_grad()
    value.backward()
    opt_actor.step()
"""
RIGHT = {
    "each in its turn": STEP.replace("    opt_critic.step()\n", "").replace("    opt_actor.step()", "    opt_critic.step()\n    opt_actor.step()"),
    "its own parameters already": STEP.replace("value.backward()", "value.backward(inputs=list(actor.parameters()))"),
    "gradients that are cleared before the step": STEP.replace("    opt_actor.zero_grad()", "    opt_critic.zero_grad()\n    opt_actor.zero_grad()"),
    "one optimizer": STEP.replace("opt_critic", "opt_actor"),
}  # fmt: skip


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_other_orders_stay(body: str, tmp_path: pathlib.Path) -> None:
    """Nothing to move, nothing to keep out, or nothing left to step with."""
    assert rewritten(tmp_path, "backward_of_own_parameters", HEAD + body, "value.backward") == HEAD + body


INPUTS = '    value.backward(inputs=[one for group in opt_actor.param_groups for one in group["params"]])'


def test_the_step_moves_and_the_second_backward_keeps_to_its_own(tmp_path: pathlib.Path) -> None:
    """A second time nothing is left to do."""
    source = HEAD + STEP
    after = rewritten(tmp_path, "backward_of_own_parameters", source, "value.backward")
    moved = STEP.replace("    opt_critic.step()\n", "").replace(
        "    value.backward()", f"{INPUTS}\n    opt_critic.step()"
    )
    assert after == HEAD + moved
    assert rewritten(tmp_path, "backward_of_own_parameters", after, "value.backward") == after


@pytest.mark.torch
def test_the_gradients_are_those_of_the_losses_as_computed(tmp_path: pathlib.Path) -> None:
    """As `torch.autograd.grad` gives them, each loss for its own network, before anything steps."""
    torch = pytest.importorskip("torch")
    source = HEAD + STEP
    after = rewritten(tmp_path, "backward_of_own_parameters", source, "value.backward").replace("range(2)", "range(1)")
    (tmp_path / "fixed.py").write_text(after)
    spec = importlib.util.spec_from_file_location(f"{tmp_path.name}_fixed", tmp_path / "fixed.py")
    sys.dont_write_bytecode = True
    fixed = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fixed)
    start = {}
    exec(HEAD, start)
    actor, critic, x = start["actor"], start["critic"], start["x"]
    wrong = (critic(actor(x).detach()) - 1).square().mean()
    value = -critic(actor(x)).square().mean()
    meant = [
        *torch.autograd.grad(wrong, list(critic.parameters())), *torch.autograd.grad(value, list(actor.parameters()))
    ]  # fmt: skip
    got = [one.grad for one in (*fixed.critic.parameters(), *fixed.actor.parameters())]
    assert all(map(torch.allclose, got, meant))


BEHIND = """import torch
from torch import nn

model, classifier = Autoencoder(), nn.Linear(3, 2)
opt_m = torch.optim.Adam(model.parameters())
opt_c = torch.optim.Adam(classifier.parameters())
for x in torch.randn(3, 5, 4):
    opt_m.zero_grad()
    opt_c.zero_grad()
    code = MAKER(x)
    rebuilt = (model.decoder(code) - x).square().mean()
    rebuilt.backward(retain_graph=True)
    opt_m.step()
    label = classifier(code).square().mean()
    label.backward()
    opt_c.step()
"""


@pytest.mark.parametrize(("maker", "applicability"), [("model.encoder", "display"), ("classifier", None)])
def test_a_loss_behind_what_has_stepped(maker: str, applicability: str | None, tmp_path: pathlib.Path) -> None:
    """A classifier behind an encoder may be meant to train it; what the second network makes itself is its own."""
    source = BEHIND.replace("MAKER", maker)
    incident = failed({"train.py": line_of(source, "label.backward")})
    found = best("backward_of_own_parameters", write(tmp_path, {"train.py": source}), incident=incident)
    assert found is not None
    assert found.applicability == applicability
