"""A student that is made of the teacher's modules gets copies of them."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, diff_lines, failed, rewritten, write

HEAD = """import copy
import torch
from torch import nn


def freeze(module):
    module.eval()
    for p in module.parameters():
        p.requires_grad = False


def set_trainable(net, flag):
    for p in net.parameters():
        p.requires_grad_(flag)


"""
TAIL = """
opt = torch.optim.Adam(student.parameters())
loss = student(torch.randn(4, 3)).mean()
loss.backward()
"""
PAIR = {"live_shared_modules": "student and teacher"}
TAKEN = {
    "every second layer": (
        "student = Net(teacher.embed, teacher.layers[::2])\nfreeze(teacher)",
        ["+student = copy.deepcopy(Net(teacher.embed, teacher.layers[::2]))"],
    ),
    "the children": (
        "student = nn.Sequential(*teacher.children())\nset_trainable(teacher, False)",
        ["+student = copy.deepcopy(nn.Sequential(*teacher.children()))"],
    ),
    "through another name": (
        "kept = [one for one in teacher.layers if one.keep]\nstudent = nn.Sequential(*kept)\nteacher.requires_grad_(False)",
        ["+student = copy.deepcopy(nn.Sequential(*kept))"],
    ),
    "frozen before": (
        "freeze(teacher)\nstudent = nn.Sequential(*teacher.layers[:2])",
        ["+student = copy.deepcopy(nn.Sequential(*teacher.layers[:2])).requires_grad_(True)"],
    ),
    "part by part": (
        "student = Net(2)\nstudent.embed = teacher.embed\nfor i in range(2):\n    student.layers[i] = teacher.layers[2 * i]\nfreeze(teacher)",
        ["+student.embed = copy.deepcopy(teacher.embed)", "+    student.layers[i] = copy.deepcopy(teacher.layers[2 * i])"],
    ),
    "one cache": (
        "student = model_of(2)\nfreeze(teacher)",
        ["+student = copy.deepcopy(model_of(2))"],
    ),
    "in a helper": (
        "def shrink(big):\n    small = Net(2)\n    small.layers = big.layers[::2]\n    return small\n\n\nstudent = shrink(teacher)\nfreeze(teacher)",
        ["+    small.layers = copy.deepcopy(big.layers[::2])"],
    ),
    "frozen in a chain": (
        "student = Net(teacher.layers[:2]).to('cpu')\nteacher.eval().requires_grad_(False)",
        ["+student = copy.deepcopy(Net(teacher.layers[:2])).to('cpu')"],
    ),
    "moved to the device": (
        "student = Net(teacher.embed, teacher.layers[::2])\nstudent = student.to('cpu')\nfreeze(teacher)",
        ["+student = copy.deepcopy(Net(teacher.embed, teacher.layers[::2]))"],
    ),
}  # fmt: skip
STAY = {
    "a copy": "student = copy.deepcopy(teacher)\nfreeze(teacher)",
    "loaded weights": "student = Net(2)\nstudent.load_state_dict(teacher.state_dict())\nfreeze(teacher)",
    "frozen by itself": "student = Net(teacher.layers[:2])\nfreeze(teacher)\nfreeze(student)",
    "never frozen": "student = Net(teacher.layers[:2])\nset_trainable(teacher, True)",
    "made in two ways": "if big:\n    student = Net(teacher.layers)\nelse:\n    student = Net(teacher.layers[:2])\nfreeze(teacher)",
    "of the same settings": "student = Small(teacher.config)\nfreeze(teacher)",
    "a part, frozen before": "freeze(teacher)\nstudent = Net(2)\nstudent.layers = teacher.layers[:2]",
    "the teacher anew, frozen before": "student = Net(2)\nfreeze(teacher)\nteacher = student",
    "tied parts": "student = Net(2)\nstudent.a = teacher.a\nstudent.b = teacher.b\nteacher.a.weight = teacher.b.weight\nfreeze(teacher)",
}


def program(lines: str) -> str:
    return f"{HEAD}teacher = model_of(4)\n{lines}{TAIL}"


@pytest.mark.parametrize("lines", STAY.values(), ids=STAY)
def test_others_stay(lines: str, tmp_path: pathlib.Path) -> None:
    """What is a copy, is frozen by itself, or is not plain; whatever a run saw."""
    source = program(lines)
    assert rewritten(tmp_path, "copy_module", source, "loss.backward", facts=PAIR) == source


@pytest.mark.parametrize(("lines", "wanted"), TAKEN.values(), ids=TAKEN)
def test_what_is_taken_is_copied(lines: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """Where it is taken, once a run saw it; the teacher stays frozen."""
    source = program(lines)
    assert rewritten(tmp_path, "copy_module", source, "loss.backward") == source
    after = rewritten(tmp_path, "copy_module", source, "loss.backward", facts=PAIR)
    assert [one for one in diff_lines(source, after) if one[0] == "+"] == wanted
    assert rewritten(tmp_path, "unfreeze", source, "loss.backward", facts=PAIR) == source


def test_the_average_of_an_object(tmp_path: pathlib.Path) -> None:
    """The frozen one is the copy where it is taken from what learns; kept by an object, frozen by a helper."""
    source = (
        f"{HEAD}class Run:\n    def __init__(self, model):\n        self.model = model\n        self.ema = self.model\n"
        "        freeze(self.ema)\n\n\nrun = Run(Net())\nloss.backward()\n"
    )
    after = rewritten(tmp_path, "copy_module", source, "loss.backward", facts={"live_shared_modules": "model and ema"})
    assert diff_lines(source, after) == [
        "-        self.ema = self.model",
        "+        self.ema = copy.deepcopy(self.model)",
    ]


def test_an_average_that_is_frozen_where_it_is_bound(tmp_path: pathlib.Path) -> None:
    """The copy is frozen, not the model."""
    source = f"{HEAD}model = Net()\nema = model.eval().requires_grad_(False)\nloss.backward()\n"
    after = rewritten(tmp_path, "copy_module", source, "loss.backward", facts={"live_shared_modules": "model and ema"})
    assert diff_lines(source, after)[-1] == "+ema = copy.deepcopy(model).eval().requires_grad_(False)"


def test_in_another_file(tmp_path: pathlib.Path) -> None:
    """The line that takes the modules is guilty, and says which one freezes them."""
    models = "def halve(big):\n    return Net(big.embed, big.layers[::2])\n"
    train = program("student = halve(teacher)\nfreeze(teacher)").replace("import copy", "from models import halve")
    found = best(
        "copy_module",
        write(tmp_path, {"train.py": train, "models.py": models}),
        incident=failed({"train.py": 22}, facts=PAIR),
    )
    assert found is not None
    assert (pathlib.Path(found.culprit.file).name, found.culprit.line) == ("models.py", 2)
    assert "train.py:19 freezes both" in found.culprit.why
    assert splice(models, found.edits) == (
        "from copy import deepcopy\n\n" + models.replace("Net(big.embed, big.layers[::2])", "deepcopy(Net(big.embed, big.layers[::2]))")
    )  # fmt: skip


REGISTRY = """import torch
def previous(net):
    old = Models.create("small")
    old.load_state_dict(net.state_dict())
    return old.eval().requires_grad_(False)
def train(net, old):
    loss = net(torch.ones(2, 3)).sum()
    loss.backward()
net = CREATED
train(net, previous(net))
"""


@pytest.mark.parametrize(("created", "is_alike"), [('Models.create("small")', True), ("Small()", False)])
def test_what_a_registry_hands_out_again(created: str, is_alike: bool, tmp_path: pathlib.Path) -> None:
    """Made by the same call in another function; what is made otherwise is shared in ways that are not read."""
    source = REGISTRY.replace("CREATED", created)
    after = rewritten(tmp_path, "copy_module", source, "loss.backward", facts={"live_shared_modules": "net and old"})
    wanted = ['+    old = deepcopy(Models.create("small"))'] if is_alike else []
    assert [one for one in diff_lines(source, after) if "create" in one and one[0] == "+"] == wanted
