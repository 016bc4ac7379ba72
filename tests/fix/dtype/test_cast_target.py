"""A loss gets its target in the dtype that it takes."""

from __future__ import annotations

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import ExceptionRecord, Frame, Incident
from tests.fix.rewriting import best, changed_lines, rewritten, write

HEAD = """import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
net = nn.Linear(3, 2)
x = torch.randn(6, 3)
out = net(x)
"""
RIGHT = {
    "integers for classes": (
        HEAD + "y = torch.randint(0, 2, (6,)).long()\nloss = F.cross_entropy(out, y)\n",
        "loss =",
        {},
    ),
    "floats for values": (HEAD + "y = torch.ones(6, 2).float()\nloss = F.mse_loss(out, y)\n", "loss =", {}),
    "cast in the call": (HEAD + "y = torch.ones(6)\nloss = F.cross_entropy(out, y.long())\n", "loss =", {}),
    "a loss on another line": (HEAD + "y = torch.ones(6)\nprint(y)\nloss = F.cross_entropy(out, y)\n", "print(y)", {}),
    "a table of losses that differ": (
        HEAD + "LOSSES = {'a': nn.MSELoss(), 'b': nn.NLLLoss()}\ny = torch.ones(6)\nloss = LOSSES[kind](out, y)\n",
        "loss =",
        {},
    ),
    "a function that makes losses that differ": (
        HEAD
        + "def make(kind):\n    return nn.MSELoss() if kind else nn.NLLLoss()\n"
        + "criterion = make(1)\nloss = criterion(out, load())\n",
        "loss =",
        {},
    ),
    "a table of functions that differ": (
        HEAD + "LOSSES = {'a': F.mse_loss, 'b': F.nll_loss}\ny = torch.ones(6)\nloss = LOSSES[kind](out, y)\n",
        "loss =",
        {},
    ),
    "a function of the program's own beside one of torch": (
        HEAD + "LOSSES = {'a': F.mse_loss, 'b': own}\ny = torch.ones(6)\nloss = LOSSES[kind](out, y)\n",
        "loss =",
        {},
    ),
    "no loss of torch": (HEAD + "y = torch.ones(6)\nloss = my_loss(out, y)\n", "loss =", {}),
}
WRONG = {
    "a loss that an object is given": (
        HEAD
        + "from dataclasses import dataclass\n@dataclass\nclass Runner:\n    criterion: object\n    def loss(self, a, b):\n"
        + "        return self.criterion(a, b)\nrunner = Runner(nn.CrossEntropyLoss())\nrunner.loss(out, rows)\n",
        "return self.criterion",
        {},
        ["return self.criterion(a, b.long())"],
    ),
    "values with an integer dtype": (
        HEAD
        + "def hot():\n    made = torch.zeros(6, 2, dtype=torch.long)\n    made[0] = 1\n    return made\n"
        + "loss = F.binary_cross_entropy_with_logits(out, hot())\n",
        "loss =",
        {},
        ["made = torch.zeros(6, 2, dtype=torch.float32)"],
    ),
    "values made integers": (
        HEAD + "y = (out > 0).long()\nloss = F.binary_cross_entropy_with_logits(out, y)\n",
        "loss =",
        {},
        ["y = (out > 0).float()"],
    ),
    "labels made floats": (
        HEAD + "y = (x[:, 0] > 0).float()\nloss = F.cross_entropy(out, y)\n",
        "loss =",
        {},
        ["y = (x[:, 0] > 0).long()"],
    ),
    "rows of labels made floats": (
        HEAD + "y = torch.from_numpy(table['y'].to_numpy())\nrows = y[:4]\nloss = F.cross_entropy(out, rows)\n",
        "loss =",
        {},
        ["y = torch.from_numpy(table['y'].to_numpy()).long()"],
    ),
    "labels with a float dtype": (
        HEAD + "y = torch.zeros(6, dtype=torch.float32)\nloss = nn.CrossEntropyLoss()(out, y)\n",
        "loss =",
        {},
        ["y = torch.zeros(6, dtype=torch.long)"],
    ),
    "a column of a table": (
        HEAD + "table = torch.tensor([[0.5, 1.0]])\ny = table[:, 1]\nloss = F.nll_loss(out, y)\n",
        "loss =",
        {},
        ["y = table[:, 1].long()"],
    ),
    "one-hot rows for probabilities": (
        HEAD + "y = F.one_hot(labels, 2)\nloss = F.cross_entropy(out, y)\n",
        "loss =",
        {"message": "Expected floating point type for target with class probabilities, got Long"},
        ["loss = F.cross_entropy(out, y.float())"],
    ),
    "integers for probabilities": (
        HEAD + "criterion = nn.BCEWithLogitsLoss()\ny = torch.tensor([0, 1])\nloss = criterion(out[:2, 0], y)\n",
        "loss =",
        {},
        ["loss = criterion(out[:2, 0], y.float())"],
    ),
    "float64 targets, seen in the backward": (
        HEAD + "y = torch.from_numpy(np.zeros((6, 2)))\nloss = F.mse_loss(out, y)\nloss.backward()\n",
        "loss.backward()",
        {},
        ["y = torch.from_numpy(np.zeros((6, 2))).float()"],
    ),
    "a table of losses that all take values": (
        HEAD
        + "LOSSES = {'a': nn.MSELoss(), 'b': nn.BCELoss()}\ny = torch.tensor([0, 1])\nloss = LOSSES[kind](out[:2, 0], y)\n",
        "loss =",
        {},
        ["loss = LOSSES[kind](out[:2, 0], y.float())"],
    ),
    "one loss of a table by its name": (
        HEAD + "LOSSES = {'a': nn.MSELoss(), 'b': nn.NLLLoss()}\ny = torch.ones(6)\nloss = LOSSES['b'](out, y)\n",
        "loss =",
        {},
        ["y = torch.ones(6).long()"],
    ),
    "a table of functions, one of them partial": (
        HEAD
        + "from functools import partial\nLOSSES = {'h': partial(F.huber_loss, delta=2.0), 'm': F.mse_loss}\n"
        + "loss_of = LOSSES[kind]\ny = load()\nloss = loss_of(out, y)\nloss.backward()\n",
        "loss.backward()",
        {},
        ["loss = loss_of(out, y.float())"],
    ),
    "a function that is given": (
        HEAD + "def fit(net, criterion=F.nll_loss):\n    return criterion(net(x), load())\nfit(net)\n",
        "return criterion",
        {},
        ["return criterion(net(x), load().long())"],
    ),
    "what a function makes for a kind": (
        HEAD
        + """def make(kind):
    match kind:
        case "weighted":
            return nn.BCEWithLogitsLoss(pos_weight=torch.ones(2))
        case "plain":
            return nn.BCEWithLogitsLoss()
criterion = make("plain")
loss = criterion(out, load())
""",
        "loss =",
        {},
        ["loss = criterion(out, load().float())"],
    ),
    "functions that a function makes, and a module": (
        HEAD
        + """from functools import partial
def make(task):
    match task:
        case {"kind": "weighted"}:
            return partial(F.binary_cross_entropy_with_logits, pos_weight=torch.ones(2))
        case {"kind": "plain"}:
            return F.binary_cross_entropy_with_logits
    return nn.BCEWithLogitsLoss()
def step(criterion):
    return criterion(out, load())
step(make(task))
""",
        "return criterion",
        {},
        ["return criterion(out, load().float())"],
    ),
    "one of two functions": (
        HEAD + "loss_of = F.l1_loss if robust else F.mse_loss\nloss = loss_of(out, load())\n",
        "loss = loss_of",
        {},
        ["loss = loss_of(out, load().float())"],
    ),
    "one_hot of floats": (HEAD + "y = F.one_hot(labels, 2)\n", "one_hot", {}, ["y = F.one_hot(labels.long(), 2)"]),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Targets of the right dtype, and losses that the failure does not name, are left alone."""
    assert rewritten(tmp_path, "cast_target", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """Class indices become integers and values floats, where they are made or in the call; a second time nothing is left to do."""
    after = rewritten(tmp_path, "cast_target", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "cast_target", after, None if at not in after else at or None, **given) == after


TWO = """import numpy as np
import torch
import torch.nn.functional as F


def collate(rows):
    factor = torch.from_numpy(np.stack(rows))
    return {"factor": factor, "x": torch.ones(2)}


def score(out, factor):
    return F.mse_loss(out, factor) + F.huber_loss(out.diff(), factor.diff())


def step(out, batch):
    score(out, batch["factor"]).backward()
"""
DOUBLE = "Found dtype Double but expected Float"


def test_the_batch_is_cast_where_it_is_made(tmp_path) -> None:
    """The collate function gives the target its dtype, for all losses that take it."""
    after = rewritten(tmp_path, "cast_target", TWO, ".backward()", message=DOUBLE)
    assert changed_lines(TWO, after) == ["factor = torch.from_numpy(np.stack(rows)).float()"]


def test_all_losses_are_cast_together(tmp_path) -> None:
    """Where the batch comes from elsewhere each loss casts it: with one alone the other fails in the same words."""
    source = TWO.replace('"factor": factor', '"target": factor')
    after = rewritten(tmp_path, "cast_target", source, ".backward()", message=DOUBLE)
    assert changed_lines(source, after) == [
        "return F.mse_loss(out, factor.float()) + F.huber_loss(out.diff(), factor.diff().float())"
    ]


TABLE = """import torch.nn.functional as F
TERMS = {"tags": (F.binary_cross_entropy_with_logits, 1.0), "smooth": (smooth, 0.1)}
total = 0.0
for name, (term, weight) in TERMS.items():
    total = total + weight * term(scores, tags)
"""


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("weight * term(scores, tags)", ["    total = total + weight * term(scores, tags.float())"]),
        ("weight * F.pad(term(scores, tags), (0, 1))", ["    total = total + weight * F.pad(term(scores, tags.float()), (0, 1))"]),
        ("term(scores, tags) + term(scores, masks)", []),
    ],
    ids=["a call", "within one of torch", "two calls"],
)  # fmt: skip
def test_the_loss_that_the_traceback_names(tmp_path, line: str, wanted: list[str]) -> None:
    """Whatever table the call takes it from; of two calls it may have been either."""
    source = TABLE.replace("weight * term(scores, tags)", line)
    program = write(tmp_path, {"train.py": source})
    own = Frame(file="train.py", line=5, code=source.splitlines()[4].strip())
    torch_s = Frame(file="torch/nn/functional.py", line=3, function="binary_cross_entropy_with_logits", library="torch")
    record = ExceptionRecord(type="RuntimeError", message="it failed", frames=(own, torch_s))
    found = best("cast_target", program, incident=Incident(exceptions=(record,)))
    after = splice(source, found.edits) if found is not None else source
    assert [f"    {one}" for one in changed_lines(source, after or "")] == wanted


def test_classes_in_a_table_of_losses(tmp_path) -> None:
    """Integers would cut off the values of the other losses that the same call runs."""
    source = TABLE.replace("binary_cross_entropy_with_logits", "cross_entropy")
    program = write(tmp_path, {"train.py": source})
    own = Frame(file="train.py", line=5, code=source.splitlines()[4].strip())
    torch_s = Frame(file="torch/nn/functional.py", line=3, function="cross_entropy", library="torch")
    record = ExceptionRecord(type="RuntimeError", message="it failed", frames=(own, torch_s))
    assert best("cast_target", program, incident=Incident(exceptions=(record,))) is None
