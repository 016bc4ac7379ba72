"""Groups of parameters that are picked by name, and one that takes all the rest."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MESSAGE = "some parameters appear in more than one parameter group"
PROGRAM = """import torch

def groups(model):
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    fast = [p for n, p in named if FAST]
    slow = [p for n, p in named if SLOW]
    head = [p for n, p in named if HEAD]
    return [{"params": slow}, {"params": fast, "lr": 0.1}, {"params": head, "lr": 0.2}]

def build(model):
    return torch.optim.AdamW(groups(model))
"""


def program(slow: str, fast: str = '"lora_B" in n', head: str = '"classifier" in n') -> str:
    return PROGRAM.replace("FAST", fast).replace("SLOW", slow).replace("HEAD", head)


CURED = {
    "a word": (program('"lora_B" not in n'), 'slow = [p for n, p in named if "lora_B" not in n and "classifier" not in n]'),
    "one of several words": (
        program('"lora_B" not in n', head="any(w in n for w in HEADS)"),
        'slow = [p for n, p in named if "lora_B" not in n and not any(w in n for w in HEADS)]',
    ),
    "a beginning": (
        program('"lora_B" not in n', head='n.startswith("head")'),
        'slow = [p for n, p in named if "lora_B" not in n and not n.startswith("head")]',
    ),
}  # fmt: skip
LEFT = {
    "all are left out": program('"lora_B" not in n and "classifier" not in n'),
    "no rest": program('"lora_A" in n'),
    "two tests": program('"lora_B" not in n', head='"classifier" in n and p.ndim > 1'),
}


@pytest.mark.parametrize(("source", "wanted"), CURED.values(), ids=CURED)
def test_the_rest_leaves_it_out(tmp_path: pathlib.Path, source: str, wanted: str) -> None:
    """One condition more; a second time nothing is left to do."""
    after = rewritten(tmp_path, "rest_without_named", source, "torch.optim", message=MESSAGE)
    assert changed_lines(source, after) == [wanted]
    assert rewritten(tmp_path, "rest_without_named", after, "torch.optim", message=MESSAGE) == after


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_leaves(tmp_path: pathlib.Path, source: str) -> None:
    """What does not say that it is the rest, or picks by more than a name."""
    assert rewritten(tmp_path, "rest_without_named", source, "torch.optim", message=MESSAGE) == source
