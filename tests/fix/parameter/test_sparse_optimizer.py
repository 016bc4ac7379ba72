"""Sparse gradients meet an optimizer that takes them."""

from __future__ import annotations

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.rewriting import changed_lines, failed, rewritten, write

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


LOOP = (
    HEAD
    + """from net import Net

net = Net(sparse=True)
opt = torch.optim.SparseAdam(net.parameters(), lr=0.1)
for x in range(3):
    opt.zero_grad()
    net(x).backward()
    opt.step()
"""
)
REFUSED = {"message": "SparseAdam does not support dense gradients, please consider Adam instead"}


def test_dense_layers_get_an_optimizer_beside(tmp_path) -> None:
    """Each steps its own: the rows that a batch does not look up stay as they are, as their author chose."""
    after = rewritten(tmp_path, "sparse_optimizer", LOOP, None, **REFUSED)
    assert changed_lines(LOOP, after) == [
        "sparse = {p for m in net.modules() if isinstance(m, (nn.Embedding, nn.EmbeddingBag)) and m.sparse for p in m.parameters()}",
        "opt = torch.optim.SparseAdam([p for p in net.parameters() if p in sparse], lr=0.1)",
        "dense_opt = torch.optim.Adam([p for p in net.parameters() if p not in sparse], lr=0.1)",
        "dense_opt.zero_grad()",
        "dense_opt.step()",
    ]
    assert rewritten(tmp_path, "sparse_optimizer", after, None, **REFUSED) == after


@pytest.mark.parametrize(
    "line",
    ["sched = make(opt)\n", "def again(opt):\n    opt.step()\n", "opt.step(closure)\n", "state = opt.state_dict()\n"],
    ids=["scheduler", "another function", "closure", "state"],
)
def test_an_optimizer_that_others_take_stays(line: str, tmp_path) -> None:
    """What a scheduler or a file holds of one optimizer would miss the second."""
    source = LOOP + line
    assert rewritten(tmp_path, "sparse_optimizer", source, None, **REFUSED) == source


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


CONFIGURED = {
    "train.py": (
        "import torch, yaml\nfrom model import Net\ncfg = yaml.safe_load(open('config.yaml'))\n"
        "kinds = {'adam': torch.optim.Adam}\nnet = Net(cfg['model']['sparse'])\n"
        "opt = kinds[cfg['optimizer']](net.parameters())\n"
    ),
    "model.py": (
        "from torch import nn\nclass Net(nn.Module):\n    def __init__(self, sparse=False):\n        super().__init__()\n"
        "        self.a = nn.Embedding(9, 2, sparse=sparse)\n        self.b = nn.EmbeddingBag(9, 2, sparse=sparse)\n"
    ),
}


@pytest.mark.parametrize(("written", "count"), [("true", 1), ("false", 0)])
def test_a_setting_of_two_tables(tmp_path, written: str, count: int) -> None:
    """The configuration that asks for sparse gradients is changed, once, wherever it is read."""
    text = f"model: {{sparse: {written}}}\noptimizer: adam\n"
    (tmp_path / "config.yaml").write_text(text)
    program = write(tmp_path, CONFIGURED)
    found = list(find_codemod("sparse_optimizer")(Context(program=program, incident=failed())))
    edits = {edit for one in found for edit in one.edits}
    assert len(edits) == count
    for edit in edits:
        assert splice(text, [edit]) == "model: {sparse: false}\noptimizer: adam\n"
