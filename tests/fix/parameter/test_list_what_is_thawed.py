"""Parameters that one pass freezes and another thaws are kept in a list."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import itertools
import torch
from torch import nn

a, b = nn.Linear(2, 2), nn.Linear(2, 1)

def switch(parameters, flag):
    for p in parameters:
        p.requires_grad = flag

"""
PASSES = "switch(held, False)\nswitch(held, True)\n"
LOOPS = "for p in held:\n    p.requires_grad_(False)\nfor p in held:\n    p.requires_grad_(True)\n"
KEPT = """class Game:
    def __init__(self):
        self.held = {kept}

    def first(self):
        switch(self.held, flag=False)

    def second(self):
        switch(self.held, flag=True)
"""
WRONG = {
    "a chain, switched by a function": (
        f"held = itertools.chain(a.parameters(), b.parameters())\n{PASSES}",
        "held = list(itertools.chain(a.parameters(), b.parameters()))",
    ),
    "a filter, switched by loops": (
        f"held = filter(lambda p: p.ndim > 1, a.parameters())\n{LOOPS}",
        "held = [p for p in a.parameters() if p.ndim > 1]",
    ),
    "a generator expression that an object keeps": (
        KEPT.format(kept="(p for net in (a, b) for p in net.parameters())"),
        "self.held = [p for net in (a, b) for p in net.parameters()]",
    ),
    "the generator of a module, counted first": (
        "held = a.parameters()\nprint(sum(p.numel() for p in held))\nfor p in held:\n    p.requires_grad_(True)\n",
        "held = list(a.parameters())",
    ),
}
RIGHT = {
    "a list": f"held = list(itertools.chain(a.parameters(), b.parameters()))\n{PASSES}",
    "one pass": "held = itertools.chain(a.parameters(), b.parameters())\nswitch(held, False)\n",
    "passes that set no flags": "held = a.parameters()\nprint(len(list(held)))\nprint(len(list(held)))\n",
    "made anew before each pass": "held = a.parameters()\nswitch(held, False)\nheld = a.parameters()\nswitch(held, True)\n",
    "no parameters": f"held = itertools.chain([torch.ones(1)], [torch.ones(1)])\n{PASSES}",
    "one attribute of two classes": KEPT.format(kept="a.parameters()")
    + KEPT.format(kept="[]").replace("Game", "Other"),
}


@pytest.mark.parametrize(("body", "wanted"), WRONG.values(), ids=WRONG)
def test_iterators_become_lists(tmp_path, body: str, wanted: str) -> None:
    """A second time nothing is left to do."""
    after = rewritten(tmp_path, "list_what_is_thawed", HEAD + body)
    assert changed_lines(HEAD + body, after) == [wanted]
    assert rewritten(tmp_path, "list_what_is_thawed", after) == after


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, body: str) -> None:
    """What is walked once, made anew or no iterator of parameters."""
    assert rewritten(tmp_path, "list_what_is_thawed", HEAD + body) == HEAD + body


SPARED = """import itertools
from contextlib import contextmanager
from torch import nn

a, b = nn.Linear(2, 2), nn.Linear(2, 1)


@contextmanager
def frozen(params):
    \"\"\"Spares the gradients.\"\"\"
    for p in params:
        p.requires_grad = False
    try:
        yield
    finally:
        for p in PASS:
            p.requires_grad = True


def parts():
    return itertools.chain(a.parameters(), b.parameters())


with frozen(GIVEN):
    pass
"""


@pytest.mark.parametrize(
    ("given", "walked", "wanted"),
    [
        ("parts()", "params", ["params = list(params)"]),
        ("a.parameters()", "params", ["params = list(params)"]),
        ("list(parts())", "params", []),
        ("[a.weight]", "params", []),
        ("parts()", "parts()", []),
    ],
)
def test_what_a_manager_walks_twice(tmp_path, given: str, walked: str, wanted: list[str]) -> None:
    """It keeps in a list what it is given, if a caller gives an iterator."""
    source = SPARED.replace("GIVEN", given).replace("PASS", walked)
    assert changed_lines(source, rewritten(tmp_path, "list_what_is_thawed", source)) == wanted
