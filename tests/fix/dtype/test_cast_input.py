"""Float64 values are cast where they are born, inputs of a half-precision model at its call."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
net = nn.Linear(3, 1)
rng = np.random.default_rng(0)
raw = rng.normal(size=(9, 3))
"""
DOUBLE = {"fields": {"left_dtype": "float64", "right_dtype": "float32"}}
HALF = {"fields": {"left_dtype": "float32", "right_dtype": "bfloat16"}}

RIGHT = {
    "an array cast to float32": (
        HEAD + "x = torch.from_numpy(raw.astype(np.float32))\nout = net(x)\n",
        "net(x)",
        DOUBLE,
    ),
    "a tensor made as float32": (HEAD + "x = torch.tensor(raw, dtype=torch.float32)\nout = net(x)\n", "net(x)", DOUBLE),
    "a tensor cast": (HEAD + "x = torch.from_numpy(raw).float()\nout = net(x)\n", "net(x)", DOUBLE),
    "torch's own numbers": (HEAD + "x = torch.randn(9, 3)\nout = net(x)\n", "net(x)", DOUBLE),
    "counts that stay whole": (
        HEAD + "x = torch.stack([torch.from_numpy(np.arange(3) // 2), torch.zeros(3)])\nout = net(x)\n",
        "net(x)",
        DOUBLE,
    ),
    "a tensor made of a list": (
        HEAD + "x = torch.tensor([1.0, 2.0, 3.0])\nout = net(x)\n",
        "net(x)",
        DOUBLE,
    ),
    "another mismatch": (
        HEAD + "x = torch.from_numpy(raw)\nout = net(x)\n",
        "net(x)",
        {"fields": {"left_dtype": "int64"}},
    ),
    "a line that is not named": (HEAD + "x = torch.from_numpy(raw)\nprint(1)\nout = net(x)\n", "print(1)", DOUBLE),
    "a half model under autocast": (
        HEAD + "net.bfloat16()\nx = torch.randn(9, 3)\nwith torch.autocast('cpu'):\n    out = net(x)\n",
        "net(x)",
        HALF,
    ),
    "an input cast already": (
        HEAD + "net = net.to(torch.bfloat16)\nx = torch.randn(9, 3)\nout = net(x.to(torch.bfloat16))\n",
        "net(x.to",
        HALF,
    ),
}

CLASS = """class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows.astype(np.float32)
        self.low = np.array([0.5, 1.5, 2.5])

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return torch.from_numpy(self.rows[i] - self.low), torch.ones(1)


"""
SPARSE = """src, dst = np.array([0, 1, 2]), np.array([1, 2, 0])
def adjacency():
    degree = np.bincount(src, minlength=9)
    weight = WEIGHT
    values = torch.from_numpy(weight)
    return torch.sparse_coo_tensor(torch.from_numpy(np.stack([src, dst])), values, (9, 9)).coalesce()
adj, x = adjacency(), torch.randn(9, 3)
out = torch.sparse.mm(adj, x)
"""
PRODUCT = {"fields": {"expected_type": "Double", "found_type": "Float"}}
WRONG = {
    "a root of counts in a sparse matrix": (
        HEAD + SPARSE.replace("WEIGHT", "1.0 / np.sqrt(degree[src] * degree[dst])"),
        "torch.sparse.mm",
        PRODUCT,
        ["weight = (1.0 / np.sqrt(degree[src] * degree[dst])).astype(np.float32)"],
    ),
    "a quotient of counts": (
        HEAD + SPARSE.replace("WEIGHT", "1 / degree[src]"),
        "torch.sparse.mm",
        PRODUCT,
        ["values = torch.from_numpy(weight).float()"],
    ),
    "a tensor of an array": (
        HEAD + "x = torch.from_numpy(raw)\nout = net(x)\n",
        "net(x)",
        DOUBLE,
        ["x = torch.from_numpy(raw).float()"],
    ),
    "a promotion in torch": (
        HEAD + "mean = torch.tensor(raw.mean(axis=0))\nx = torch.randn(9, 3)\nx = x - mean\nout = net(x)\n",
        "net(x)",
        DOUBLE,
        ["x = (x - mean).float()"],
    ),
    "a call of double": (
        HEAD + "x = torch.randn(9, 3).double()\nout = net(x)\n",
        "net(x)",
        DOUBLE,
        ["x = torch.randn(9, 3).double().float()"],
    ),
    "a helper": (
        HEAD
        + "def load():\n    return torch.tensor(np.linspace(0, 1, 9)).reshape(3, 3)\n\n\nx = load()\nout = net(x)\n",
        "net(x)",
        DOUBLE,
        ["return torch.tensor(np.linspace(0, 1, 9)).float().reshape(3, 3)"],
    ),
    "columns of a data set": (
        HEAD
        + "data = TensorDataset(torch.from_numpy(raw), torch.ones(9))\nfor x, y in DataLoader(data, batch_size=3):\n    out = net(x)\n",
        "net(x)",
        DOUBLE,
        ["data = TensorDataset(torch.from_numpy(raw).float(), torch.ones(9))"],
    ),
    "a data set's item": (
        HEAD + CLASS + "for x, y in DataLoader(Rows(raw)):\n    out = net(x)\n",
        "net(x)",
        DOUBLE,
        ["return torch.from_numpy((self.rows[i] - self.low).astype(np.float32)), torch.ones(1)"],
    ),
    "rows stacked in a comprehension": (
        HEAD + "x = torch.stack([torch.from_numpy(raw)[i] for i in range(9)])\nout = net(x)\n",
        "net(x)",
        DOUBLE,
        ["x = torch.stack([torch.from_numpy(raw).float()[i] for i in range(9)])"],
    ),
    "an array of which nothing tells the dtype": (
        HEAD + "from survey import rows\nx = torch.as_tensor(rows.values)\nout = net(x)\n",
        "net(x)",
        DOUBLE,
        ["x = torch.as_tensor(rows.values).float()"],
    ),
    "a property that is multiplied": (
        HEAD
        + "class Graph:\n    @property\n    def spread(self):\n        return torch.from_numpy(raw)\ngraph = Graph()\n"
        + "out = graph.spread @ net(torch.randn(3, 3))\n",
        "out = graph",
        DOUBLE,
        ["return torch.from_numpy(raw).float()"],
    ),
    "a half-precision model": (
        HEAD + "net = net.to(torch.bfloat16)\nx = torch.randn(9, 3)\nout = net(x)\n",
        "out = net(x",
        HALF,
        ["out = net(x.to(torch.bfloat16))"],
    ),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """What is float32 already, or not known to be float64, is left alone."""
    assert rewritten(tmp_path, "cast_input", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The cast stands where the value became float64; a second time nothing is left to do."""
    after = rewritten(tmp_path, "cast_input", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "cast_input", after, None if at not in after else at or None, **given) == after
