"""A result whose gradient is read keeps it."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import WarningRecord
from tests.fix.rewriting import best, diff_lines, failed, line_of, rewritten, write

ATTACK = """import torch


def attack(model, window):
    window = window.clone().requires_grad_(True)
    scaled, scale = standardise(window)
    model(scaled).sum().backward()
    return scaled + 0.1 * scaled.grad.sign()


attack(net, x)
"""
RIGHT = {
    "a leaf": ATTACK.replace("scaled.grad", "window.grad"),
    "kept already": ATTACK.replace("    model(scaled)", "    scaled.retain_grad()\n    model(scaled)"),
    "flagged": ATTACK.replace("    model(scaled)", "    scaled.requires_grad_()\n    model(scaled)"),
    "bound anew in each round": ATTACK.replace("    return scaled", "    scaled = scaled - scaled.grad\n    return scaled"),
    "made in a branch": ATTACK.replace("    scaled, scale = s", "    if scale:\n        scaled, scale = s"),
}  # fmt: skip


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_what_is_no_plain_result_stays(source: str, tmp_path: pathlib.Path) -> None:
    """Leaves, results that keep their gradient, and names that are bound several times or sometimes."""
    assert rewritten(tmp_path, "retain_grad", source, ".grad.sign()") == source


def test_a_result_keeps_its_gradient(tmp_path: pathlib.Path) -> None:
    """Behind the line that makes it, before the backward; a second time nothing is left to do."""
    after = rewritten(tmp_path, "retain_grad", ATTACK, ".grad.sign()")
    assert diff_lines(ATTACK, after) == ["+    scaled.retain_grad()"]
    assert rewritten(tmp_path, "retain_grad", after, ".grad.sign()") == after


HELPER = """import torch


def direction(vectors):
    return vectors.grad.sign()


def attack(model, tokens):
    vectors = model.embed(tokens)
    model.classify(vectors).sum().backward()
    return vectors + 0.1 * direction(vectors)


attack(net, x)
"""


def test_the_warning_stands_where_the_gradient_is_read(tmp_path: pathlib.Path) -> None:
    """A helper that is handed None fails elsewhere."""
    source = HELPER.replace("vectors.grad.sign()", "vectors * 2").replace(
        "0.1 * direction(vectors)", "direction(vectors.grad)"
    )
    said = "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed."
    line = line_of(source, "direction(vectors.grad)")
    warning = WarningRecord(category="UserWarning", message=said, file=str(tmp_path / "train.py"), line=line)
    program = write(tmp_path, {"train.py": source})
    proposal = best("retain_grad", program, incident=replace(failed(), warnings=(warning,)))
    assert proposal is not None
    assert diff_lines(source, splice(source, proposal.edits)) == ["+    vectors.retain_grad()"]


def test_what_a_helper_reads_is_kept_by_its_caller(tmp_path: pathlib.Path) -> None:
    """The helper is handed the result; where several callers hand it something nothing is said."""
    after = rewritten(tmp_path, "retain_grad", HELPER, "vectors.grad")
    assert diff_lines(HELPER, after) == ["+    vectors.retain_grad()"]
    assert after.index("retain_grad") > after.index("model.embed")
    other = HELPER + "direction(x)\n"
    assert rewritten(tmp_path, "retain_grad", other, "vectors.grad") == other


KEEPER = """from torch import nn


class Rater(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.words = None

    def forward(self, ids):
        words = self.embed(ids)
        self.words = words
        return words.sum()


def slope(model):
    return model.words.grad.norm()


slope(Rater())
"""
OWN = {
    "kept already": KEEPER.replace("        return words", "        self.words.retain_grad()\n        return words"),
    "kept from outside": KEEPER.replace("slope(R", "Rater().words.retain_grad()\nslope(R"),
    "bound twice": KEEPER.replace("        return words", "        self.words = words * 2\n        return words"),
    "a parameter": KEEPER.replace("self.words = words", "self.words = nn.Parameter(words)"),
    "made with the module": KEEPER.replace("self.words = None", "self.words = self.embed.weight * 2").replace(
        "        self.words = words\n", ""
    ),
}  # fmt: skip


def test_what_a_module_keeps(tmp_path: pathlib.Path) -> None:
    """Where there is a graph: the same forward is run without one."""
    after = rewritten(tmp_path, "retain_grad", KEEPER, "model.words.grad")
    assert [one.strip("+ ") for one in diff_lines(KEEPER, after)] == [
        "if self.words.requires_grad:",
        "self.words.retain_grad()",
    ]


@pytest.mark.parametrize("source", OWN.values(), ids=OWN)
def test_what_a_module_keeps_otherwise_stays(source: str, tmp_path: pathlib.Path) -> None:
    """Kept by the program, bound in several places, or a leaf."""
    assert rewritten(tmp_path, "retain_grad", source, "model.words.grad") == source


HOOKS = """import torch
class Scores:
    def __init__(self):
        self.seen = {}
        self.rows = []

    def keep(self, name, output):
        STORE

    def update(self):
        LOOP
            score = (act * act.grad).sum()  # read
"""
KEEPS = ["+        if output.requires_grad:", "+            output.retain_grad()"]


@pytest.mark.parametrize(("store", "loop", "wanted"), [
    ("self.seen[name] = output", "for name, act in self.seen.items():", KEEPS),
    ("self.seen[name] = output", "for act in self.seen.values():", KEEPS),
    ("self.rows.append(output)", "for act in self.rows:", KEEPS),
    ("output.retain_grad()\n        self.rows.append(output)", "for act in self.rows:", []),
    ("self.rows.append(output * 2)", "for act in self.rows:", []),
])  # fmt: skip
def test_what_a_hook_keeps_in_a_table(store: str, loop: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """Before it is put there, where it has a graph; a second time nothing is left to do."""
    source = HOOKS.replace("STORE", store).replace("LOOP", loop)
    after = rewritten(tmp_path, "retain_grad", source, "# read")
    assert diff_lines(source, after) == wanted
    assert rewritten(tmp_path, "retain_grad", after, "# read") == after
