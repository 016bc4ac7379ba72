"""A model that an evaluation elsewhere left in eval mode is trained in train mode; one that is to stay in it stays."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, diff_lines, failed, line_of, write

REFUSED = "cudnn RNN backward can only be called in training mode"
SCORES = (
    "class Score:\n    def __init__(self, x, y):\n        self.x, self.y = x, y\n\n    def __call__(self, network):\n"
    "        network.eval()\n        return (network(self.x) - self.y).abs().mean().item()\n"
)
HEAD = "import torch\nfrom torch import nn\nfrom scores import Score\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.rnn = nn.GRU(4, 8)\n\n"
STEP = "        loss = (model(x) - y).abs().mean()\n        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n"
FIT = "def fit(model, data, optimizer):\n    for x, y in data:\n" + STEP
MAIN = (
    "\ndef main(data, x, y):\n    net = Net().cuda()\n    optimizer = torch.optim.Adam(net.parameters())\n    score = Score(x, y)\n"
    "    print(score(net))\n    for epoch in range(3):\n        fit(net, data, optimizer)\n        print(score(net))\n"
)
TRAINER = (
    "class Trainer:\n    def __init__(self, data):\n        self.net, self.data = Net(), data\n        self.optimizer = torch.optim.Adam(self.net.parameters())\n\n"
    "    def check(self):\n        self.net.eval()\n        return self.net(self.data[0])\n\n    def loss(self, x, y):\n        return (self.net(x) - y).abs().mean()\n\n"
    "    def run(self):\n        for epoch in range(3):\n            for x, y in self.data:\n                loss = self.loss(x, y)\n"
    "                loss.backward()\n                self.optimizer.step()\n            self.check()\n"
)
INSIDE = (
    "def measure(network, x):\n    network.eval()\n    return network(x)\n\ndef fit(model, data, optimizer):\n    model.train()\n    for at, (x, y) in enumerate(data):\n"
    "        if at % 9 == 0:\n            measure(model, x)\n" + STEP
)
SCRIPT = (
    "def measure(network, x):\n    network.train(False)\n    return network(x)\n\nmodel = Net()\noptimizer = torch.optim.Adam(model.parameters())\n"
    "measure(model, x0)\nif data:\n    for x, y in data:\n" + STEP
)
MENDED = {
    "by an object": (HEAD + FIT + MAIN, ["+    model.train()"]),
    "by the object itself": (HEAD + TRAINER, ["+            self.net.train()"]),
    "between the steps": (HEAD + INSIDE + MAIN, ["+        model.train()"]),
    "of a script": (HEAD + SCRIPT, ["+    model.train()"]),
    "of an optimizer that a table names": (
        HEAD + FIT + MAIN.replace("torch.optim.Adam(", "OPTIMIZERS[name]("), ["+    model.train()"],
    ),
}  # fmt: skip
LEFT = {
    "in train mode": HEAD + FIT.replace("    for", "    model.train()\n    for") + MAIN,
    "put back": HEAD
    + FIT
    + MAIN.replace("print(score(net))", "look(net)")
    + "\ndef look(one):\n    was = one.training\n    one.eval()\n    one(x)\n    one.train(was)\n",
    "no training: the gradients of an input": HEAD
    + FIT.replace("        optimizer.step()\n", "").replace("optimizer.zero_grad()", "x.grad = None")
    + MAIN,
    "another model": HEAD
    + FIT
    + MAIN.replace("score(net)", "score(teacher)").replace("    score =", "    teacher = Net()\n    score ="),
    "frozen": HEAD + FIT + MAIN.replace("print(score(net))", "pin(net)") + "\ndef pin(one):\n    one.eval()\n    one.requires_grad_(False)\n",
    "by its own train": HEAD
    + "    def train(self, mode=True):\n        super().train(mode)\n        self.eval()\n\n"
    + FIT
    + MAIN.replace("score(net)", "net"),
    "in the training itself": HEAD + FIT.replace("    for", "    model.eval()\n    for") + MAIN.replace("score(net)", "net"),
}  # fmt: skip


def mended(folder, source, scores=SCORES, message=REFUSED):
    program = write(folder, {"train.py": source, "scores.py": scores})
    proposal = best(
        "train_after_evaluation", program, incident=failed({"train.py": line_of(source, "loss.backward")}, message)
    )
    if proposal is None:
        return source
    (path,) = {edit.file for edit in proposal.edits}
    return splice(program.files[path].text, proposal.edits)


@pytest.mark.parametrize(("source", "lines"), MENDED.values(), ids=MENDED)
def test_is_trained_in_train_mode(source, lines, tmp_path: pathlib.Path) -> None:
    after = mended(tmp_path, source)
    assert diff_lines(source, after) == lines
    assert mended(tmp_path, after) == after


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_left_alone(source, tmp_path: pathlib.Path) -> None:
    assert mended(tmp_path, source) == source


def test_points_at_the_evaluation(tmp_path: pathlib.Path) -> None:
    source = HEAD + FIT + MAIN
    program = write(tmp_path, {"train.py": source, "scores.py": SCORES})
    incident = failed({"train.py": line_of(source, "loss.backward")}, REFUSED)
    proposal = best("train_after_evaluation", program, incident=incident)
    assert proposal is not None
    assert (proposal.culprit.file.endswith("scores.py"), proposal.culprit.code) == (True, "network.eval()")


def test_another_failure(tmp_path: pathlib.Path) -> None:
    source = HEAD + FIT + MAIN
    assert mended(tmp_path, source, message="it failed") == source
