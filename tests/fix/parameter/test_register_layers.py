"""Layers that a module keeps in plain containers are registered."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)


"""
RIGHT = {
    "layers that are unpacked": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k = (nn.Linear(2, 2) for _ in range(2))
        self.v, self.o = nn.Linear(2, 2), nn.Linear(2, 2)
""",
        "",
    ),
    "registered layers": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2)])
""",
        "",
    ),
    "sizes": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.sizes = [2, 3]
""",
        "",
    ),
    "functions": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = [torch.relu, torch.tanh]
""",
        "",
    ),
    "activations collected in a forward": (
        HEAD
        + """class Net(nn.Module):
    def forward(self, x):
        self.seen = []
        self.seen.append(x.relu())
        return x
""",
        "",
    ),
    "an empty list": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = []
""",
        "",
    ),
}
WRONG = {
    "a tuple of a generator": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = tuple(nn.Linear(2, 2) for _ in range(3))
""",
        "",
        ["self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))"],
    ),
    "a tuple": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = (nn.Linear(2, 2), Block(2))
""",
        "",
        ["self.layers = nn.ModuleList((nn.Linear(2, 2), Block(2)))"],
    ),
    "a list of a list": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = list([nn.Linear(2, 2), nn.Linear(2, 2)])
""",
        "",
        ["self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])"],
    ),
    "a comprehension": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(2, 2) for _ in range(3)]
""",
        "",
        ["self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))"],
    ),
    "a list that is filled": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.blocks = []
        for _ in range(depth):
            self.blocks.append(Block(4))
""",
        "",
        ["self.blocks = nn.ModuleList()"],
    ),
    "a dictionary of heads": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = {"a": nn.Linear(2, 2), "b": nn.Linear(2, 3)}
""",
        "",
        ['self.heads = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 3)})'],
    ),
    "parameters": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = [nn.Parameter(torch.ones(2)), nn.Parameter(torch.zeros(2))]
""",
        "",
        ["self.scales = nn.ParameterList([nn.Parameter(torch.ones(2)), nn.Parameter(torch.zeros(2))])"],
    ),
    "layers that are written out": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = [nn.Linear(2, 2), nn.ReLU(), Block(2)]
""",
        "",
        ["self.steps = nn.ModuleList([nn.Linear(2, 2), nn.ReLU(), Block(2)])"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Registered layers and containers of anything else are left alone."""
    assert rewritten(tmp_path, "register_layers", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The container registers what it holds; a second time nothing is left to do."""
    after = rewritten(tmp_path, "register_layers", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "register_layers", after, again) == after


HEIR = (
    HEAD
    + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.shapes = [nn.Linear(2, 2) for _ in range(3)]
        self.teacher = [nn.Linear(2, 2)]


class Pairs(Net):
    def __init__(self):
        super().__init__()
        self.pairs = [nn.Linear(2, 2) for _ in range(3)]
"""
)


def test_all_lists_are_registered_together(tmp_path) -> None:
    """With one of them alone the other's layers would not train; one layer alone in a list is kept out on purpose."""
    assert changed_lines(HEIR, rewritten(tmp_path, "register_layers", HEIR)) == [
        "self.shapes = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))",
        "self.pairs = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))",
    ]


def test_one_layer_on_the_cpu_is_not_made_to_train(tmp_path) -> None:
    """Where devices differ a list of one layer, which keeps a teacher out of the parameters, has to move and no more."""
    source = HEAD + (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.teacher = [nn.Linear(2, 2)]\n        self.blocks = LAYERS\n"
    )
    mixed = "Expected all tensors to be on the same device"
    alone = source.replace("LAYERS", "None")
    assert rewritten(tmp_path, "register_layers", alone, "self.teacher", message=mixed) == alone
    source = source.replace("LAYERS", "[nn.Linear(2, 2) for _ in range(3)]")
    after = rewritten(tmp_path, "register_layers", source, "self.teacher", message=mixed)
    assert changed_lines(source, after) == ["self.blocks = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))"]
