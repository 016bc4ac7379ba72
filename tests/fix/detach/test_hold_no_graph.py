"""What fills the memory with graphs: evaluations go under `no_grad`, collected values lose their graph, losses keep theirs."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

FULL = "CUDA out of memory. Tried to allocate 20.00 MiB."
HEAD = "import torch\nfrom torch import nn\n\nmodel = nn.Linear(4, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
STEP = "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
LOOP = "for step in range(9):\n    loss = model(torch.randn(2, 4)).square().mean()\n"
EPOCHS = (
    "for epoch in range(2):\n    model.train()\n    for step in range(9):\n        loss = model(torch.randn(2, 4)).mean()\n"
    "        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n    model.eval()\n    outputs = []\n"
    "    for batch in torch.randn(9, 2, 4):\n        outputs.append(model(batch))\n"
)
EVALUATE = "def evaluate(model, batches):\n    model.eval()\n    return torch.cat([model(one) for one in batches])\n\n"
MENDED = {
    "a loop that evaluates": (
        HEAD + EPOCHS, "outputs.append(model", ["with torch.no_grad():", "for batch in torch.randn(9, 2, 4):", "outputs.append(model(batch))"],
    ),
    "a function that evaluates": (HEAD + EVALUATE + LOOP + STEP + "    evaluate(model, [])\n", "return torch.cat", ["@torch.no_grad()"]),
    "a running sum": (
        HEAD + "total = 0.0\n" + LOOP + STEP + "    total += loss\nprint(total)\n", "loss = model", ["total += loss.detach()"],
    ),
    "a history": (
        HEAD + "history = []\n" + LOOP + STEP + "    history.append(loss)\n", "loss = model", ["history.append(loss.detach())"],
    ),
}  # fmt: skip
LEFT = {
    "an evaluation without grad": (HEAD + "@torch.no_grad()\n" + EVALUATE + LOOP + STEP, "return torch.cat", FULL),
    "the training loop": (HEAD + LOOP + STEP, "loss = model", FULL),
    "a loss that is summed and sent back": (
        HEAD + "for epoch in range(3):\n    loss = 0.0\n    for part in range(3):\n        loss += model(torch.randn(2, 4)).mean()\n" + STEP,
        "loss +=", FULL,
    ),
    "a number": (HEAD + "total = 0.0\n" + LOOP + STEP + "    total += loss.item()\n", "loss = model", FULL),
    "losses that are stacked": (
        HEAD + "for step in range(9):\n    losses = []\n    for part in range(3):\n        losses.append(model(torch.randn(2, 4)).mean())\n"
        "    loss = torch.stack(losses).sum()\n" + STEP, "losses.append", FULL,
    ),
    "losses of a window that the loss adds up": (
        HEAD + "losses = []\nfor step in range(9):\n    losses.append(model(torch.randn(2, 4)).mean())\n    if step % 3 == 2:\n"
        "        loss = torch.stack(losses).sum()\n        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n        losses.clear()\n",
        "losses.append", FULL,
    ),
    "another failure": (HEAD + EPOCHS, "outputs.append(model", "it failed"),
    "an evaluation that trains": (
        HEAD + EVALUATE.replace("return", "loss =").replace("batches])", "batches]).mean()\n    loss.backward()\n    return loss") + LOOP + STEP,
        "loss = torch.cat", FULL,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "at", "lines"), MENDED.values(), ids=MENDED)
def test_mended(source, at, lines, tmp_path: pathlib.Path) -> None:
    assert changed_lines(source, rewritten(tmp_path, "hold_no_graph", source, at, message=FULL)) == lines


@pytest.mark.parametrize(("source", "at", "message"), LEFT.values(), ids=LEFT)
def test_left_alone(source, at, message, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "hold_no_graph", source, at, message=message) == source
