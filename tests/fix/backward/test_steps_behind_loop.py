"""Networks that train in one loop by losses of one forward: the steps go behind the last backward."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

GAN = """import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
gen, critic = nn.Linear(4, 2), nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
opts = {"critic": torch.optim.SGD(critic.parameters(), lr=0.1), "gen": torch.optim.SGD(gen.parameters(), lr=0.1)}

def losses(real):
    fake = critic(gen(torch.randn(8, 4)))
    return {"critic": F.softplus(-critic(real)).mean() + F.softplus(fake).mean(), "gen": F.softplus(-fake).mean()}

for _ in range(3):
    terms = losses(torch.randn(8, 2))
    for name, opt in opts.items():
        opt.zero_grad()
        terms[name].backward()
        opt.step()
"""
BY_KEY = GAN.replace("for name, opt in opts.items():", 'for name in ("critic", "gen"):').replace("opt.", "opts[name].")
CLIPPED = GAN.replace(
    "        opt.step()",
    "        nn.utils.clip_grad_norm_(gen.parameters(), 1.0)\n        opt.step()\n        opt.zero_grad()\n        print(name)",
)
INPUTS = 'inputs=[one for group in {}.param_groups for one in group["params"]]'
EDITS = {
    "items": (GAN, f"        terms[name].backward(retain_graph=True, {INPUTS.format('opt')})\n    for name, opt in opts.items():\n        opt.step()\n"),
    "keys": (BY_KEY, f"        terms[name].backward(retain_graph=True, {INPUTS.format('opts[name]')})\n    for name in (\"critic\", \"gen\"):\n        opts[name].step()\n"),
    "clipped, and cleared": (
        CLIPPED,
        f"        terms[name].backward(retain_graph=True, {INPUTS.format('opt')})\n        print(name)\n    for name, opt in opts.items():\n"
        "        nn.utils.clip_grad_norm_(gen.parameters(), 1.0)\n        opt.step()\n        opt.zero_grad()\n",
    ),
    "the graph kept": (
        GAN.replace("backward()", "backward(retain_graph=True)"),
        f"        terms[name].backward(retain_graph=True, {INPUTS.format('opt')})\n    for name, opt in opts.items():\n        opt.step()\n",
    ),
}  # fmt: skip
STAYS = {
    "one optimizer": GAN.replace("opt.", "main.").replace("\ndef losses", '\nmain = opts["gen"]\ndef losses'),
    "gradients that add up": GAN.replace("        opt.zero_grad()\n", "").replace("    terms = ", "    [opt.zero_grad() for opt in opts.values()]\n    terms = "),
    "one loss": GAN.replace("terms[name].backward()", 'terms["gen"].backward()'),
    "an iterator that is used up": GAN.replace("in opts.items():", "in pairs:").replace("    for name", "    pairs = iter(opts.items())\n    for name"),
    "gradients that are read": GAN.replace("        opt.step()", "        opt.step()\n        print(gen.weight.grad.norm())"),
    "what only the first loop has": GAN.replace("        opt.step()", "        bound = float(name == 'gen')\n        nn.utils.clip_grad_norm_(gen.parameters(), bound)\n        opt.step()"),
    "a loop that is left": GAN.replace("        opt.zero_grad()", "        if not terms:\n            break\n        opt.zero_grad()"),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_every_step_goes_behind_the_last_backward(tmp_path: pathlib.Path, name: str) -> None:
    source, end = EDITS[name]
    assert rewritten(tmp_path, "steps_behind_loop", source, "terms[name].backward").endswith(end)


@pytest.mark.parametrize("name", STAYS)
def test_what_is_not_sure_stays(tmp_path: pathlib.Path, name: str) -> None:
    assert diff_lines(STAYS[name], rewritten(tmp_path, "steps_behind_loop", STAYS[name], ".backward()")) == []


@pytest.mark.torch
@pytest.mark.parametrize("name", ["items", "keys"])
def test_the_gradients_are_those_of_the_losses_as_they_were(tmp_path: pathlib.Path, name: str) -> None:
    """The first step moves each network by the gradient of its own loss, both taken before any step."""
    torch = pytest.importorskip("torch")
    after = rewritten(tmp_path, "steps_behind_loop", EDITS[name][0], "terms[name].backward").replace(
        "range(3)", "range(1)"
    )
    space: dict = {}
    exec(after, space)  # noqa: S102 - the program of a test
    start: dict = {}
    exec(after.partition("for _ in")[0], start)  # noqa: S102
    terms = start["losses"](torch.randn(8, 2))
    for key in ("critic", "gen"):
        wanted = torch.autograd.grad(terms[key], list(start[key].parameters()), retain_graph=True)
        for was, now, gradient in zip(start[key].parameters(), space[key].parameters(), wanted, strict=True):
            assert torch.allclose(now, was - 0.1 * gradient)
