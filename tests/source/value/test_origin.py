"""Where values come from: loaders, data sets, dictionaries, helpers."""

from __future__ import annotations

import ast

import pytest

from explainer.source.program import read_program
from explainer.source.value.binding import Value
from explainer.source.value.origin import origins

HEAD = """import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Rows(Dataset):
    def __getitem__(self, i):
        return torch.zeros(3), torch.ones(1)


class Named(Dataset):
    def __getitem__(self, i):
        return {"x": torch.zeros(3), "y": torch.ones(1)}


class Scale:
    def __call__(self, v):
        return v * 2


def load():
    return torch.arange(3), torch.eye(3)


"""

CASES = {
    "a name that nothing binds": ("probe = unknown", []),
    "an expression": ("probe = 1 + 2", ["1 + 2"]),
    "a name": ("a = torch.ones(2)\nprobe = a", ["torch.ones(2)"]),
    "a helper's second result": ("a, b = load()\nprobe = b", ["torch.eye(3)"]),
    "columns": ("d = TensorDataset(torch.ones(2), torch.eye(2))\nfor x, y in DataLoader(d):\n    probe = y", ["torch.eye(2)"]),
    "items of a data set": ("for x, y in DataLoader(Rows()):\n    probe = x", ["torch.zeros(3)"]),
    "a key of a batch": ('for b in DataLoader(Named()):\n    probe = b["y"]', ["torch.ones(1)"]),
    "a key of a batch that was moved": (
        'for b in DataLoader(Named()):\n    b = {k: v.to("cpu") for k, v in b.items()}\n    probe = b["x"]', ["torch.zeros(3)"],
    ),
    "an object that is called": ("scale = Scale()\nprobe = scale(3)", ["v * 2"]),
}  # fmt: skip


@pytest.mark.parametrize(("body", "wanted"), CASES.values(), ids=CASES)
def test_origins(tmp_path, body: str, wanted: list[str]) -> None:
    """The value given to `probe` is followed to the expressions that make it."""
    (tmp_path / "train.py").write_text(f"{HEAD}{body}\n")
    program = read_program(str(tmp_path), ["train.py"])
    (file,) = program.order
    (value,) = [
        node.value for node in file.walk() if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "probe"
    ]
    assert [ast.unparse(one.node) for one in origins(Value(node=value, file=file), program)] == wanted
