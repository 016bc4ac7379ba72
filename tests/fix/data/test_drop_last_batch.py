"""The loader of the failing loop drops its last, incomplete batch."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.fix.codemod import Context
from explainer.fix.splice import splice
from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

HEAD = """import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.randn(9, 4))
net = nn.BatchNorm1d(4)
"""
RIGHT = {
    "dropped already": (
        HEAD + "loader = DataLoader(data, batch_size=4, drop_last=True)\nfor (x,) in loader:\n    net(x)\n",
        "net(x)",
        {},
    ),
    "two loaders and no loop": (
        HEAD + "a = DataLoader(data)\nb = DataLoader(data)\nnet(torch.randn(1, 4))\n",
        "net(torch",
        {},
    ),
    "a batch sampler": (
        HEAD + "loader = DataLoader(data, batch_sampler=s)\nfor (x,) in loader:\n    net(x)\n",
        "net(x)",
        {},
    ),
    "no loader": (HEAD + "net(torch.randn(1, 4))\n", "net(torch", {}),
}
WRONG = {
    "a loader by name": (
        HEAD + "train = DataLoader(data, batch_size=4)\nvalid = DataLoader(data)\nfor (x,) in train:\n    net(x)\n",
        "net(x)",
        {},
        ["train = DataLoader(data, batch_size=4, drop_last=True)"],
    ),
    "a loader in the loop, enumerated": (
        HEAD + "for i, (x,) in enumerate(DataLoader(data, 4)):\n    net(x)\n",
        "net(x)",
        {},
        ["for i, (x,) in enumerate(DataLoader(data, 4, drop_last=True)):"],
    ),
    "the argument set to False": (
        HEAD + "loader = DataLoader(data, 4, drop_last=False)\nfor (x,) in loader:\n    net(x)\n",
        "net(x)",
        {},
        ["loader = DataLoader(data, 4, drop_last=True)"],
    ),
    "a loader handed to a function": (
        HEAD + "def run(loader):\n    for (x,) in loader:\n        net(x)\n\n\nrun(DataLoader(data, 4))\n",
        "net(x)",
        {},
        ["run(DataLoader(data, 4, drop_last=True))"],
    ),
}

STATE = (
    HEAD + "cell = nn.LSTM(4, 3)\nstate = None\nfor (x,) in DataLoader(data, 4):\n    _, state = cell(x[None], state)\n"
)
SMALLER = "Expected hidden[0] size (1, 1, 3), got [1, 4, 3]"
RIGHT |= {
    "a state that is made anew": (
        STATE.replace("state = None\n", "").replace(
            "_, state = cell(x[None], state)", "out, _ = cell(x[None], (h.expand(1, 4, 3), h))"
        ),
        "cell(x",
        {"options": {"state": True}, "message": SMALLER},
    ),
    "batches of one": (HEAD + "for (x,) in DataLoader(data, batch_size=1):\n    net(x)\n", "net(x)", {}),
    "batches of nothing else said": (HEAD + "for (x,) in DataLoader(data):\n    net(x)\n", "net(x)", {}),
    "a state of another width": (
        STATE,
        "cell(x",
        {"options": {"state": True}, "message": SMALLER.replace("4, 3", "4, 5")},
    ),
    "a state of fewer rows": (
        STATE,
        "cell(x",
        {"options": {"state": True}, "message": SMALLER.replace("[1, 4", "[1, 0")},
    ),
}
WRONG |= {
    "a state that is kept": (
        STATE,
        "cell(x",
        {"options": {"state": True}, "message": SMALLER},
        ["for (x,) in DataLoader(data, 4, drop_last=True):"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Loaders that drop it already, and loaders that the failing loop does not walk, are left alone."""
    assert rewritten(tmp_path, "drop_last_batch", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """Only the loader of the loop gets the argument; a second time nothing is left to do."""
    after = rewritten(tmp_path, "drop_last_batch", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "drop_last_batch", after, None if at not in after else at or None, **given) == after


MODULE = """import lightning as L
from torch import nn
from torch.utils.data import DataLoader

class Oils(L.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(self.rows, batch_size=4)
    def val_dataloader(self):
        return DataLoader(self.held_out, batch_size=4)

class Model(L.LightningModule):
    def training_step(self, batch, index):
        return self.norm(batch).mean()
"""
FIT = (
    MODULE.partition("class Oils")[0]
    + """
train, held_out = DataLoader(rows, batch_size=4), DataLoader(others, batch_size=4)
class Model(L.LightningModule):
    def training_step(self, batch, index):
        return self.norm(batch).mean()
L.Trainer().fit(Model(), train, held_out)
"""
)


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (MODULE, ["return DataLoader(self.rows, batch_size=4, drop_last=True)"]),
        (FIT, ["train, held_out = DataLoader(rows, batch_size=4, drop_last=True), DataLoader(others, batch_size=4)"]),
    ],
    ids=["its own method", "handed to fit"],
)
def test_a_trainer_walks_the_loader(source: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """What a library's trainer trains from drops its last batch; what it validates with keeps all rows."""
    assert changed_lines(source, rewritten(tmp_path, "drop_last_batch", source, "self.norm(batch)")) == wanted


OPTIONS = """import tomllib
{head}cfg = tomllib.load(open("run.toml", "rb"))
loader = DataLoader(data, **cfg["loader"])
for (x,) in loader:
    net(x)
"""


@pytest.mark.parametrize(("table", "after"), [
    ("batch_size = 4\n", "[loader]\nbatch_size = 4\ndrop_last = true\n\n[optim]\nlr = 0.1\n"),
    ("batch_size = 4\ndrop_last = false\n", "[loader]\nbatch_size = 4\ndrop_last = true\n\n[optim]\nlr = 0.1\n"),
    ("batch_size = 4\ndrop_last = true\n", None), ("batch_size = 1\n", None), ("num_workers = 0\n", None),
])  # fmt: skip
def test_options_of_a_file(table: str, after: str | None, tmp_path: pathlib.Path) -> None:
    """What the loader takes from a configuration is written there."""
    text = f"[loader]\n{table}\n[optim]\nlr = 0.1\n"
    (tmp_path / "run.toml").write_text(text)
    source = OPTIONS.format(head=HEAD)
    program = write(tmp_path, {"train.py": source})
    found = best("drop_last_batch", program, incident=failed({str(tmp_path / "train.py"): line_of(source, "net(x)")}))
    assert (splice(text, found.edits) if found is not None else None) == after
