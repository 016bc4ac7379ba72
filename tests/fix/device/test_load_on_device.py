"""What a program takes out of a checkpoint by itself is loaded where it uses it."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, line_of, rewritten

SAID = "Expected all tensors to be on the same device, but got mat2 is on cpu, different from other tensors on cuda:0"
HEAD = 'import torch\ndevice = torch.device("cuda")\nnet = torch.nn.Linear(4, 4).to(device)\n'
AVERAGE = """class Average:
    def __init__(self, net):
        self.shadow = {k: v.detach().clone() for k, v in net.named_parameters()}
    def update(self, net):
        for k, v in net.named_parameters():
            self.shadow[k].lerp_(v, 0.1)  # fails
    def load_state_dict(self, state):
        self.shadow = {k: v.clone() for k, v in state["shadow"].items()}
average = Average(net)
"""
RESUME = """def resume(path, average):
    state = torch.load(path, map_location="cpu", weights_only=True)
    net.load_state_dict(state["net"])
    average.load_state_dict(state["average"])
resume("last.pt", average)
average.update(net)
"""
LOADED = {
    "by a method of its own": (HEAD + AVERAGE + RESUME, 'state = torch.load(path, map_location=device, weights_only=True)'),
    "into a name": (
        HEAD + 'kept = torch.load("last.pt", map_location=torch.device("cpu"))\nmemory = kept["memory"]\nscore = net.weight @ memory.T  # fails\n',
        'kept = torch.load("last.pt", map_location=device)',
    ),
    "into an attribute": (
        HEAD + "class Run:\n    def __init__(self, path):\n        self.device = device\n        saved = torch.load(path, 'cpu')\n"
        "        self.mean = saved['mean']\n    def step(self, x):\n        return net(x.to(self.device) - self.mean)  # fails\nRun('last.pt').step(x)\n",
        "saved = torch.load(path, device)",
    ),
}  # fmt: skip
LEFT = {
    "what a module loads": (
        HEAD
        + "state = torch.load('last.pt', map_location='cpu')\nnet.load_state_dict(state['net'])\nout = net.weight @ other  # fails\n"
    ),
    "where a generator is restored too": (
        HEAD + AVERAGE + RESUME.replace("    average.load", '    torch.set_rng_state(state["rng"])\n    average.load')
    ),
    "what was loaded elsewhere": HEAD + AVERAGE + RESUME.replace('map_location="cpu"', "map_location=device"),
    "what is loaded where it was": HEAD + AVERAGE + RESUME.replace(', map_location="cpu"', ""),
}


@pytest.mark.parametrize(("source", "wanted"), LOADED.values(), ids=LOADED)
def test_it_is_loaded_where_it_is_used(tmp_path: pathlib.Path, source: str, wanted: str) -> None:
    after = rewritten(tmp_path, "load_on_device", source, "# fails", message=SAID)
    assert changed_lines(source, after) == [wanted]


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_it_is_left_alone(tmp_path: pathlib.Path, source: str) -> None:
    assert line_of(source, "# fails")
    assert rewritten(tmp_path, "load_on_device", source, "# fails", message=SAID) == source
