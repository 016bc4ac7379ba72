"""The parameters move before the optimizer's state is loaded, or the state follows them."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.rewriting import changed_lines, diff_lines, failed, line_of, rewritten, write

SAID = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
HEAD = """import copy
import torch
from torch import nn
device = torch.device("cuda")
def restore(saved, net, opt):
    net.load_state_dict(saved["net"])
    opt.load_state_dict(saved["opt"])
    return saved["step"]
net = nn.Linear(4, 1)
"""
OPT = "opt = torch.optim.Adam(net.parameters())\n"
LOAD = 'opt.load_state_dict(torch.load("opt.pt"))\n'
LOOP = "for x in torch.randn(4, 5, 4).to(device):\n    net(x).mean().backward()\n    opt.step()\n"
AGAIN = "opt.load_state_dict(opt.state_dict())"
CLASS = """import torch
from torch import nn
class Run:
    def __init__(self, device):
        self.device = device
        self.net = nn.Linear(4, 1)
        self.opt = torch.optim.Adam(self.net.parameters())
        self.opt.load_state_dict(torch.load("opt.pt"))
    def fit(self, data):
        self.net.to(self.device)
        for x in data:
            self.net(x.to(self.device)).mean().backward()
            self.opt.step()
Run(torch.device("cuda")).fit(torch.randn(4, 5, 4))
"""
UP = {
    "loaded here": (OPT + LOAD + "net.to(device)\n", ["+net.to(device)", "-net.to(device)"]),
    "loaded by a helper": (
        OPT + "first = restore(torch.load('run.pt'), net, opt)\nnet = net.to(device)\n", ["+net = net.to(device)", "-net = net.to(device)"],
    ),
    "loaded where asked for": (
        OPT + "first = 0\nif resume:\n    first = restore(torch.load('run.pt'), net, opt)\nnet.cuda()\n", ["+net.cuda()", "-net.cuda()"],
    ),
    "behind another statement": (OPT + LOAD + "print('loaded')\nnet.to(device)\n", ["+net.to(device)", "-net.to(device)"]),
    "moved on the way": (OPT + LOAD + "run = nn.DataParallel(net.to(device))\n", ["+net.to(device)"]),
}  # fmt: skip
FOLLOWS = {
    "the device is known later": (OPT + LOAD + "device = torch.device('cuda', 1)\nnet.to(device)\n", [AGAIN]),
    "a copy is taken in between": (OPT + LOAD + "average = copy.deepcopy(net)\nnet.to(device)\n", [AGAIN]),
    "steps were made before": (
        OPT + "for x in torch.randn(2, 5, 4):\n    net(x).mean().backward()\n    opt.zero_grad()\nnet.to(device)\n", [AGAIN],
    ),
}  # fmt: skip
KEPT = {
    "moved before": "net.to(device)\n" + OPT + LOAD,
    "only cast": OPT + LOAD + "net.to(torch.float64)\n",
    "brought back": OPT + LOAD + "net.to('cpu')\n",
    "another model": OPT + LOAD + "other = nn.Linear(4, 1)\nother.to(device)\n",
}


@pytest.mark.parametrize(("body", "wanted"), UP.values(), ids=UP)
def test_the_model_moves_first(tmp_path: pathlib.Path, body: str, wanted: list[str]) -> None:
    """To right before what loads the state; a second time nothing is left to do."""
    source = HEAD + body + LOOP
    after = rewritten(tmp_path, "move_before_restore", source, "opt.step()", message=SAID)
    assert sorted(diff_lines(source, after)) == sorted(wanted)
    assert after.index(wanted[0][1:]) < after.rindex("load" if "opt.load" in body else "restore(")


@pytest.mark.parametrize(("body", "wanted"), FOLLOWS.values(), ids=FOLLOWS)
def test_the_state_follows(tmp_path: pathlib.Path, body: str, wanted: list[str]) -> None:
    """Where the model has to stay until then."""
    source = HEAD + body + LOOP
    after = rewritten(tmp_path, "move_before_restore", source, "opt.step()", message=SAID)
    assert changed_lines(source, after) == wanted
    assert f"net.to(device)\n{AGAIN}\n" in after


def test_the_state_of_an_object_follows(tmp_path: pathlib.Path) -> None:
    """Another method moves the model."""
    after = rewritten(tmp_path, "move_before_restore", CLASS, "self.opt.step()", message=SAID)
    assert changed_lines(CLASS, after) == ["self.opt.load_state_dict(self.opt.state_dict())"]


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_what_moves_no_parameters_away_stays(tmp_path: pathlib.Path, body: str) -> None:
    source = HEAD + body + LOOP
    assert rewritten(tmp_path, "move_before_restore", source, "opt.step()", message=SAID) == source


def test_only_a_step_asks_for_it(tmp_path: pathlib.Path) -> None:
    """A forward that met another device, and a step that failed of something else."""
    source = HEAD + OPT + LOAD + "net.to(device)\n" + LOOP
    assert rewritten(tmp_path, "move_before_restore", source, "net(x)", message=SAID) == source
    assert rewritten(tmp_path, "move_before_restore", source, "opt.step()", message="out of memory") == source


def test_both_ways_are_offered(tmp_path: pathlib.Path) -> None:
    """The better one first."""
    source = HEAD + OPT + LOAD + "net.to(device)\n" + LOOP
    program = write(tmp_path, {"train.py": source})
    incident = failed({"train.py": line_of(source, "opt.step()")}, SAID)
    first, second = find_codemod("move_before_restore")(Context(program=program, incident=incident))
    assert first.belief > second.belief
    assert changed_lines(source, splice(source, second.edits) or "") == [AGAIN]


def test_a_state_that_is_loaded_again_is_the_same() -> None:
    """What the second way writes changes no step."""
    torch = pytest.importorskip("torch")
    weights = []
    for is_loaded in (False, True):
        torch.manual_seed(0)
        net = torch.nn.Linear(3, 1)
        opt = torch.optim.AdamW(net.parameters(), lr=0.1)
        for step in range(4):
            if is_loaded and step == 2:
                opt.load_state_dict(opt.state_dict())
            opt.zero_grad()
            net(torch.ones(2, 3)).square().sum().backward()
            opt.step()
        weights.append(net.weight.detach().clone())
    assert torch.equal(*weights)
