"""Sparse gradients meet an optimizer that takes them."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "import torch\nfrom torch import nn\n"
RIGHT = {
    "a dense embedding": (HEAD + "t = nn.Embedding(9, 2)\nopt = torch.optim.Adam(t.parameters())\n", "", {}),
    "SparseAdam": (
        HEAD + "t = nn.Embedding(9, 2, sparse=True)\nopt = torch.optim.SparseAdam(t.parameters())\n",
        "",
        {},
    ),
    "SGD": (HEAD + "t = nn.Embedding(9, 2, sparse=True)\nopt = torch.optim.SGD(t.parameters())\n", "", {}),
    "dense gradients refused": (
        HEAD + "t = nn.Embedding(9, 2, sparse=True)\nopt = torch.optim.Adam(t.parameters())\n",
        "",
        {"message": "SparseAdam does not support dense gradients"},
    ),
}
WRONG = {
    "the embedding alone": (
        HEAD + "t = nn.Embedding(9, 2, sparse=True)\nopt = torch.optim.Adam(t.parameters(), lr=0.1)\n",
        "",
        {},
        ["opt = torch.optim.SparseAdam(t.parameters(), lr=0.1)"],
    ),
    "beside dense layers": (
        HEAD
        + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.t = nn.Embedding(9, 2, sparse=True)\n\n\nopt = torch.optim.AdamW(Net().parameters())\n",
        "",
        {},
        ["self.t = nn.Embedding(9, 2)"],
    ),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Dense embeddings, SparseAdam, and dense layers in SparseAdam are left alone."""
    assert rewritten(tmp_path, "sparse_optimizer", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The optimizer, or the embedding, changes; a second time nothing is left to do."""
    after = rewritten(tmp_path, "sparse_optimizer", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "sparse_optimizer", after, None if at not in after else at or None, **given) == after
