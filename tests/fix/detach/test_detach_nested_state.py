"""A helper that detaches a nested state is given the containers that it hands back as they are."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import diff_lines, rewritten

HEAD = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lower, self.upper = nn.LSTM(4, 4), nn.LSTM(4, 4)

    def start(self):
        zeros = torch.zeros(1, 4)
        return {"lower": (zeros, zeros), "upper": (zeros, zeros), "seen": 0}

    def forward(self, x, state):
        x, lower = self.lower(x, state["lower"])
        x, upper = self.upper(x, state["upper"])
        return x, {"lower": lower, "upper": upper, "seen": state["seen"] + 1}


net = Net()
opt = torch.optim.SGD(net.parameters(), 0.1)
"""
TAIL = """

state = net.start()
for _ in range(3):
    out, state = net(torch.randn(5, 4), state)
    opt.zero_grad()
    out.sum().backward()
    opt.step()
    state = detach(state)
"""
RIGHT = {
    "tuples too": """
def detach(state):
    if isinstance(state, dict):
        return {key: detach(value) for key, value in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)(detach(value) for value in state)
    if torch.is_tensor(state):
        return state.detach()
    return state
""",
    "any sequence": """
from collections.abc import Mapping, Sequence


def detach(state):
    if isinstance(state, torch.Tensor):
        return state.detach()
    if isinstance(state, Mapping):
        return {key: detach(value) for key, value in state.items()}
    if isinstance(state, Sequence):
        return [detach(value) for value in state]
    return state
""",
    "a helper that moves": """
def detach(state):
    if isinstance(state, dict):
        return {key: detach(value) for key, value in state.items()}
    if torch.is_tensor(state):
        return state.cpu()
    return state
""",
    "values for the log": """
def detach(state):
    return {key: tuple(part.detach() for part in value) if key != "seen" else value for key, value in state.items()}


def row(losses):
    found = {key: value.detach() if torch.is_tensor(value) else value for key, value in losses.items()}
    print(found)
""",
}
WRONG = {
    "dicts and lists only": (
        """
def detach(state):
    if isinstance(state, dict):
        return {key: detach(value) for key, value in state.items()}
    if isinstance(state, list):
        return [detach(value) for value in state]
    if torch.is_tensor(state):
        return state.detach()
    return state
""",
        ["+    if isinstance(state, tuple):", "+        return tuple(detach(value) for value in state)"],
    ),
    "tensors and dicts, with else": (
        """
def detach(value):
    if isinstance(value, torch.Tensor):
        return value.detach()
    elif isinstance(value, dict):
        return {key: detach(one) for key, one in value.items()}
    else:
        return value
""",
        ["+        if isinstance(value, tuple):", "+            return tuple(detach(item) for item in value)"],
    ),
    "tuples only": (
        """
def detach(state):
    if torch.is_tensor(state):
        return state.detach()
    if isinstance(state, tuple):
        return tuple(detach(part) for part in state)
    return state
""",
        [
            "+    if isinstance(state, dict):",
            "+        return {key: detach(value) for key, value in state.items()}",
        ],
    ),
    "a general helper": (
        """
def apply_to(state, change, *, depth=0):
    if isinstance(state, dict):
        return {key: apply_to(value, change, depth=depth) for key, value in state.items()}
    if torch.is_tensor(state):
        return change(state)
    return state


def detach(state):
    return apply_to(state, lambda one: one.detach())
""",
        [
            "+    if isinstance(state, tuple):",
            "+        return tuple(apply_to(value, change, depth=depth) for value in state)",
        ],
    ),
    "a tuple of names": (
        """
from collections import namedtuple

State = namedtuple("State", "h c")


def detach(state):
    if isinstance(state, dict):
        return {key: detach(value) for key, value in state.items()}
    if torch.is_tensor(state):
        return state.detach()
    return state
""",
        [
            '+    if hasattr(state, "_fields"):',
            "+        return type(state)(*(detach(value) for value in state))",
            "+    if isinstance(state, tuple):",
            "+        return tuple(detach(value) for value in state)",
        ],
    ),
    "a table of types": (
        """
from typing import NamedTuple

class State(NamedTuple):
    h: object

RULES = {list: lambda node, leaf: [walk(one, leaf) for one in node], dict: lambda node, leaf: {k: walk(v, leaf) for k, v in node.items()}, tuple: lambda node, leaf: tuple(walk(one, leaf) for one in node)}


def walk(node, leaf):
    if hasattr(node, "dim"):
        return leaf(node)
    rule = RULES.get(type(node))
    if rule is not None:
        return rule(node, leaf)
    return node


def detach(state):
    return walk(state, lambda tensor: tensor.detach())
""",
        [
            '+    if hasattr(node, "_fields"):',
            "+        return type(node)(*(walk(value, leaf) for value in node))",
        ],
    ),
    "a choice for each entry": (
        """
def detach(state):
    return {key: value.detach() if torch.is_tensor(value) else value for key, value in state.items()}
""",
        [
            "-    return {key: value.detach() if torch.is_tensor(value) else value for key, value in state.items()}",
            "+    return {key: value.detach() if torch.is_tensor(value) else tuple(part.detach() for part in value)"
            " if isinstance(value, tuple) else value for key, value in state.items()}",
        ],
    ),
    "a loop over the entries": (
        """
def detach(state):
    for key, value in state.items():
        if torch.is_tensor(value):
            state[key] = value.detach()
    return state
""",
        [
            "+        elif isinstance(value, tuple):",
            "+            state[key] = tuple(part.detach() for part in value)",
        ],
    ),
}


@pytest.mark.parametrize("helper", RIGHT.values(), ids=RIGHT)
def test_other_helpers_stay(tmp_path, helper: str) -> None:
    """Helpers that reach every part, or do another thing, are left alone."""
    source = HEAD + helper + TAIL
    assert rewritten(tmp_path, "detach_nested_state", source, "backward()") == source


@pytest.mark.parametrize(("helper", "wanted"), WRONG.values(), ids=WRONG)
def test_every_part_is_detached(tmp_path, helper: str, wanted: list[str]) -> None:
    """The helper reaches the tuples of the LSTMs; a second time nothing is left to do, and the program trains."""
    source = HEAD + helper + TAIL
    after = rewritten(tmp_path, "detach_nested_state", source, "backward()")
    assert diff_lines(source, after) == wanted
    assert rewritten(tmp_path, "detach_nested_state", after, "backward()") == after


@pytest.mark.torch
@pytest.mark.parametrize("name", [one for one in WRONG if one not in ("tuples only", "a table of types")])
def test_the_repaired_program_trains(tmp_path, name: str) -> None:
    """The program fails as it was, and runs through with the branch."""
    pytest.importorskip("torch")
    source = HEAD + WRONG[name][0] + TAIL
    with pytest.raises(RuntimeError, match="second time"):
        exec(compile(source, "train.py", "exec"), {"__name__": "train"})
    exec(
        compile(rewritten(tmp_path, "detach_nested_state", source, "backward()"), "train.py", "exec"),
        {"__name__": "train"},
    )


def test_a_helper_that_no_training_loop_calls(tmp_path) -> None:
    """What is detached for another purpose is left alone."""
    helper = WRONG["dicts and lists only"][0].replace("detach(", "snapshot(")
    source = HEAD + helper + TAIL.replace("    state = detach(state)\n", "snapshot(state)\n")
    assert rewritten(tmp_path, "detach_nested_state", source, "backward()") == source
