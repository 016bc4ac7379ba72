"""Prefixes that choose the parameters of a part end with its dot, where another part's name begins as this one does."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SAID = "some parameters appear in more than one parameter group"
TABLE = """RATES = {"body": 1e-3, "head": 1e-2, "head_norm": 5e-3}
groups = [
    {"params": [p for n, p in net.named_parameters() if n.startswith(part)], "lr": lr}
    for part, lr in RATES.items()
]
optimizer = torch.optim.SGD(groups)
"""
LOOP = """groups = []
for part in ("enc", "encoder", "head"):
    groups.append({"params": [p for n, p in net.named_parameters() if n.startswith(part)]})
optimizer = torch.optim.SGD(groups)
"""
WORDS = """head = [p for n, p in net.named_parameters() if n.startswith("head")]
norm = [p for n, p in net.named_parameters() if n.startswith("head_norm")]
optimizer = torch.optim.SGD([{"params": head}, {"params": norm}])
"""
WRONG = {
    "the keys of a table": (
        TABLE,
        ['{"params": [p for n, p in net.named_parameters() if n.startswith(f"{part}.")], "lr": lr}'],
    ),
    "words of a loop": (
        LOOP,
        ['groups.append({"params": [p for n, p in net.named_parameters() if n.startswith(f"{part}.")]})'],
    ),
    "words one by one": (WORDS, ['head = [p for n, p in net.named_parameters() if n.startswith("head.")]']),
}
RIGHT = {
    "parts of a part": TABLE.replace("head_norm", "head.norm"),
    "words that begin otherwise": TABLE.replace("head_norm", "norm"),
    "dots already": WORDS.replace('"head")', '"head.")'),
}


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_the_prefix_ends_with_a_dot(tmp_path: pathlib.Path, source: str, wanted: list[str]) -> None:
    after = rewritten(tmp_path, "prefix_of_part", source, "optimizer =", message=SAID)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "prefix_of_part", source, "optimizer =") == source


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_other_prefixes_stay(tmp_path: pathlib.Path, source: str) -> None:
    """A group of a part's part is what the author chose to split off."""
    assert rewritten(tmp_path, "prefix_of_part", source, "optimizer =", message=SAID) == source
