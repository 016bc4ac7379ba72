"""Entries that start as numbers and are tensors from the first call on are detached where they are stored, or numbers are left as they are."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

NUMBERS = """import torch
from torch import nn
from collections import defaultdict
class Balance:
    def __init__(self, names, rate=0.1):
        self.names, self.rate = list(names), rate
        self.size = START
BODY
torch.manual_seed(0)
net, balance = nn.Linear(3, 2), Balance(["a", "b"])
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 4, 3):
    out = net(x)
    loss = balance({"a": out[:, 0].pow(2).mean(), "b": out[:, 1].abs().mean()})
    opt.zero_grad(); loss.backward(); opt.step()
"""
BEHIND = """    def __call__(self, parts):
        total = sum(value / self.size[name] for name, value in parts.items())
        self.follow(parts)
        return total
    def follow(self, parts):
        for name, value in parts.items():
            self.size[name] = (1 - self.rate) * self.size[name] + self.rate * value
"""
ONE_BY_ONE = """    def __call__(self, parts):
        total = 0.0
        for name, value in parts.items():
            total = total + value / self.size[name]
            self.follow(name, value)
        return total
    def follow(self, key, value):
        self.size[key] = self.size[key] + self.rate * (value - self.size[key])
"""
INLINE = """    def __call__(self, parts):
        total = 0.0
        for at, value in enumerate(parts.values()):
            total = total + value / self.size[at]
            self.size[at] = 0.9 * self.size[at] + 0.1 * value
        return total
"""
AHEAD = BEHIND.replace("        self.follow(parts)\n", "").replace(
    "        total", "        self.follow(parts)\n        total"
)
RESET = BEHIND + "    def reset(self):\n        self.size = {name: 1.0 for name in self.names}\n"


def _numbers(start: str, body: str) -> str:
    return NUMBERS.replace("START", start).replace("BODY\n", body)


MEAN = "self.size[name] = (1 - self.rate) * self.size[name] + self.rate * value"
CUT = [
    f"-            {MEAN}",
    "+            self.size[name] = ((1 - self.rate) * self.size[name] + self.rate * value).detach()",
]
RIGHT = {
    "numbers that follow values": (
        _numbers("{name: 1.0 for name in self.names}", BEHIND.replace("self.rate * value", "self.rate * value.item()")),
        "loss = balance",
    ),
    "numbers that follow detached values": (
        _numbers(
            "{name: 1.0 for name in self.names}", BEHIND.replace("self.rate * value", "self.rate * value.detach()")
        ),
        "loss = balance",
    ),
    "numbers that follow without grad": (
        _numbers("[1.0] * 2", INLINE.replace("    def", "    @torch.no_grad()\n    def")),
        "loss = balance",
    ),
    "numbers that are counted": (
        _numbers("{name: 0 for name in self.names}", BEHIND.replace("self.rate * value", "1")),
        "loss = balance",
    ),
    "numbers that each call makes anew": (
        _numbers(
            "{}", BEHIND.replace("        total =", "        self.size = dict.fromkeys(parts, 1.0)\n        total =")
        ),
        "loss = balance",
    ),
}
WRONG = {
    "entries that were numbers": (_numbers("{name: 1.0 for name in self.names}", BEHIND), "loss = balance", CUT),
    "entries of a number for all": (_numbers("dict.fromkeys(names, 1.0)", BEHIND), "loss = balance", CUT),
    "entries that a default makes": (_numbers("defaultdict(lambda: 1.0)", BEHIND), "loss = balance", CUT),
    "entries of a class with a reset": (_numbers("{name: 1.0 for name in self.names}", RESET), "loss = balance", CUT),
    "two tables of numbers": (
        _numbers(
            "{name: 1.0 for name in self.names}; self.square = {name: 1.0 for name in self.names}",
            BEHIND.replace("self.size[name] for", "(self.size[name] + self.square[name]) for")
            + "            self.square[name] = 0.9 * self.square[name] + 0.1 * value**2\n",
        ),
        "loss = balance",
        [
            CUT[0],
            "-            self.square[name] = 0.9 * self.square[name] + 0.1 * value**2",
            CUT[1],
            "+            self.square[name] = (0.9 * self.square[name] + 0.1 * value**2).detach()",
        ],
    ),
    "an entry that the caller names": (
        _numbers('{"a": 1.0, "b": 2}', ONE_BY_ONE),
        "loss = balance",
        [
            "-        self.size[key] = self.size[key] + self.rate * (value - self.size[key])",
            "+        self.size[key] = (self.size[key] + self.rate * (value - self.size[key])).detach()",
        ],
    ),
    "a list of numbers": (
        _numbers("[1.0] * 2", INLINE),
        "loss = balance",
        [
            "-            self.size[at] = 0.9 * self.size[at] + 0.1 * value",
            "+            self.size[at] = (0.9 * self.size[at] + 0.1 * value).detach()",
        ],
    ),
    "numbers that the step goes on with": (
        _numbers("{name: 1.0 for name in self.names}", AHEAD),
        "loss = balance",
        [
            "+        self.size = {key: part if isinstance(part, (int, float)) else part.detach() "
            "for key, part in self.size.items()}"
        ],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_what_holds_no_graph_stays(source: str, at: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "detach_module_state", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_entries_are_detached(source: str, at: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """These lines change; a second time nothing is left to do."""
    after = rewritten(tmp_path, "detach_module_state", source, at)
    assert diff_lines(source, after) == changes
    assert rewritten(tmp_path, "detach_module_state", after, at) == after
