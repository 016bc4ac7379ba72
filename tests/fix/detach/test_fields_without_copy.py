"""The fields of a record are read without `asdict`, which copies them deeply."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

HEAD = """from dataclasses import asdict, astuple, dataclass
import torch
@dataclass{options}
class Terms:
    fit: torch.Tensor
    kl: {kind} = None
    def total(self, weights):
        return sum(weights[k] * v for k, v in asdict(self).items())
@dataclass
class Inner:
    weight: float = 1.0
terms = Terms(net(x).sum(), net(x).mean())
"""
PLAIN = HEAD.format(options="", kind="torch.Tensor")
WRONG = {
    "in a method": (PLAIN, "return sum", ["-        return sum(weights[k] * v for k, v in asdict(self).items())",
                                         "+        return sum(weights[k] * v for k, v in vars(self).items())"]),
    "of an object": (PLAIN + "loss = sum(asdict(terms).values())\n", "loss =",
                     ["-loss = sum(asdict(terms).values())", "+loss = sum(vars(terms).values())"]),
    "as a tuple": (PLAIN + "fit, kl = astuple(terms)\n", "fit, kl",
                   ["-fit, kl = astuple(terms)", "+fit, kl = tuple(vars(terms).values())"]),
    "a copy with a name that is read": (PLAIN + "d = asdict(terms)\nloss = d['fit']\n", "d = ", ["-d = asdict(terms)", "+d = vars(terms)"]),
}  # fmt: skip
RIGHT = {
    "a record in a record": (HEAD.format(options="", kind="Inner"), "return sum"),
    "a container": (HEAD.format(options="", kind="list[torch.Tensor]"), "return sum"),
    "slots": (HEAD.format(options="(slots=True)", kind="torch.Tensor"), "return sum"),
    "a copy that is written": (PLAIN + "d = asdict(terms)\nd['fit'] = d['fit'] * 2\n", "d = "),
    "another line": (PLAIN, "terms ="),
    "an object of which nothing is known": (PLAIN + "loss = asdict(given)\n", "loss ="),
    "another factory": (PLAIN + "d = asdict(terms, dict_factory=list)\n", "d ="),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_what_is_no_plain_record_stays(source: str, at: str, tmp_path: pathlib.Path) -> None:
    """What `asdict` takes apart further, what has no dictionary of its own, and a copy that is one on purpose."""
    assert rewritten(tmp_path, "fields_without_copy", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_the_fields_are_read(source: str, at: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """By the same names and in the same order; a second time nothing is left to do."""
    after = rewritten(tmp_path, "fields_without_copy", source, at)
    assert diff_lines(source, after) == changes
    assert rewritten(tmp_path, "fields_without_copy", after, at) == after
