"""A target becomes classes by the function that the program has for it."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, diff_lines, failed, line_of, rewritten, write

STARS = """import torch
from torch import nn
from torch.nn import functional as F

def to_class(stars):
    return (stars * 2).round().long() - 1

def prior(stars):
    return torch.bincount(to_class(stars), minlength=10)

net = nn.Linear(4, 10)
for x, stars in loader:
    loss = F.cross_entropy(net(x), stars)
    loss.backward()
"""
STAYS = {
    "of another name": STARS.replace("for x, stars", "for x, mood").replace("net(x), stars", "net(x), mood"),
    "no integers": STARS.replace(".round().long() - 1", ".round() - 1"),
    "two functions": STARS + "def rank(stars):\n    return stars.long()\nprint(rank(stars))\n",
    "a loss of values": STARS.replace("F.cross_entropy", "F.mse_loss"),
    "nobody calls it": STARS.replace("torch.bincount(to_class(stars), minlength=10)", "stars"),
}


def test_the_program_numbers_them_elsewhere(tmp_path: pathlib.Path) -> None:
    after = rewritten(tmp_path, "class_by_function", STARS, "F.cross_entropy")
    assert diff_lines(STARS, after)[1:] == ["+    loss = F.cross_entropy(net(x), to_class(stars))"]


@pytest.mark.parametrize("name", STAYS)
def test_what_is_not_sure_stays(tmp_path: pathlib.Path, name: str) -> None:
    at = "F.mse_loss" if "mse" in STAYS[name] else "F.cross_entropy"
    assert rewritten(tmp_path, "class_by_function", STAYS[name], at) == STAYS[name]


@pytest.mark.parametrize(
    ("imported", "called"),
    [
        ("from ratings import to_class as index", "index(stars)"),
        ("import ratings", "ratings.to_class(stars)"),
        ("import torch.utils", None),
    ],
)
def test_a_function_of_another_module(tmp_path: pathlib.Path, imported: str, called: str | None) -> None:
    """As this file calls it; not one that it does not know."""
    head, _, rest = STARS.partition("def to_class")
    module, _, loop = ("import torch\ndef to_class" + rest).partition("net = ")
    source = head + imported + "\nnet = " + loop
    program = write(tmp_path, {"train.py": source, "ratings.py": module})
    incident = failed({"train.py": line_of(source, "F.cross_entropy")}, code="F.cross_entropy")
    proposal = best("class_by_function", program, incident=incident)
    after = splice(source, proposal.edits) if proposal is not None else source
    wanted = [f"+    loss = F.cross_entropy(net(x), {called})"] if called else []
    assert diff_lines(source, after or "")[1:] == wanted
