"""A hook of Lightning that changes weights before the backward runs at the end of the batch."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.model.incident import Incident
from explainer.model.trace import WRITE, TracedLine
from tests.fix.mending import run as run_source
from tests.fix.rewriting import changed_lines, failed, line_of, rewritten, write

BALL = """import lightning as L
import torch
from lightning.pytorch.callbacks import Callback


class Ball(Callback):
    @torch.no_grad()
    def on_before_zero_grad(self, trainer, pl_module, optimizer):
        for p in pl_module.parameters():
            p.clamp_(-0.1, 0.1)
"""
MODULE = """import lightning as L
import torch


class Net(L.LightningModule):
    def on_before_backward(self, loss):
        with torch.no_grad():
            for p in self.parameters():
                p *= 0.9
"""
END = "def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):"
RIGHT = {
    "behind the step already": BALL.replace("on_before_zero_grad(self, trainer, pl_module, optimizer)", END[4:-1]),
    "before the step": BALL.replace("on_before_zero_grad", "on_before_optimizer_step"),
    "no write that autograd sees": BALL.replace("p.clamp_", "p.data.clamp_"),
    "no write": BALL.replace("p.clamp_(-0.1, 0.1)", "print(p.norm())"),
    "the optimizer is read": BALL + "        print(optimizer)\n",
    "another end of the batch": BALL + f"\n    {END}\n        print(batch)\n",
    "names of the new parameters": BALL + "        outputs = []\n",
    "its base is asked too": BALL + "        super().on_before_zero_grad(trainer, pl_module, optimizer)\n",
    "gradients of several batches": BALL + "trainer = L.Trainer(accumulate_grad_batches=4)\n",
    "a class of another library": BALL.replace("from lightning.pytorch.callbacks", "from engine"),
    "a plain function": "def on_before_zero_grad(trainer, pl_module, optimizer):\n    for p in pl_module.parameters():\n        p.zero_()\n",
}  # fmt: skip
WRONG = {
    "a callback": (BALL, [END]),
    "one batch a step": (BALL + "trainer = L.Trainer(accumulate_grad_batches = 1)\n", [END]),
    "a callback before the backward": (BALL.replace("zero_grad(self, trainer, pl_module, optimizer", "backward(self, trainer, pl_module, loss: object"), [END]),
    "any arguments": (
        BALL.replace("pl_module, optimizer", "pl_module, *args"),
        ["def on_train_batch_end(self, trainer, pl_module, *args):"],
    ),
    "a module": (MODULE, ["def on_train_batch_end(self, outputs, batch, batch_idx):"]),
    "a class that derives from a callback of the program": (
        BALL.replace("Ball(Callback)", "Ball(Base)").replace("class", "class Base(Callback):\n    pass\n\n\nclass", 1),
        [END],
    ),
}  # fmt: skip


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the hook does no harm, is needed where it is, or the end of the batch is taken."""
    assert rewritten(tmp_path, "hook_after_step", source) == source


@pytest.mark.parametrize(("source", "lines"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, lines: list[str], tmp_path: pathlib.Path) -> None:
    """The hook gets the other name and what Lightning hands to it; a second time nothing is left to do."""
    after = rewritten(tmp_path, "hook_after_step", source)
    assert changed_lines(source, after) == lines
    assert rewritten(tmp_path, "hook_after_step", after) == after


HELPED = BALL.replace(
    "        for p in pl_module.parameters():\n            p.clamp_(-0.1, 0.1)\n", "        project(pl_module)\n"
)
HELPER = "\n\ndef project(net):\n    for p in net.parameters():\n        p.clamp_(-0.1, 0.1)\n"


def test_a_write_that_a_trace_saw_in_a_function(tmp_path: pathlib.Path) -> None:
    """The hook is told by what it calls."""
    source = HELPED + HELPER
    traced = TracedLine(kind=WRITE, operation="clamp_", file="train.py", line=line_of(source, "clamp_"))
    context = Context(
        program=write(tmp_path, {"train.py": source}),
        incident=Incident(exceptions=failed().exceptions, traced=(traced,)),
    )
    (found,) = find_codemod("hook_after_step")(context)
    assert (found.culprit.line, found.applicability) == (line_of(source, "def on_before_zero_grad"), "unsafe")


ORDER = """import logging
import torch
import lightning as L

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
said = []


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch, index):
        said.append("forward")
        return self.layer(batch).sum()

    def on_before_zero_grad(self, optimizer):
        said.append("on_before_zero_grad")

    def on_before_backward(self, loss):
        said.append("on_before_backward")

    def backward(self, loss):
        said.append("backward")
        loss.backward()

    def on_train_batch_end(self, outputs, batch, index):
        said.append("on_train_batch_end")

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        optimizer.register_step_post_hook(lambda *given: said.append("step"))
        return optimizer


quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
L.Trainer(accelerator="cpu", max_steps=2, **quiet).fit(Net(), torch.utils.data.DataLoader(torch.randn(4, 2)))
"""


@pytest.mark.torch
def test_the_order_of_the_hooks(tmp_path: pathlib.Path) -> None:
    """Lightning calls both early hooks between a forward and its backward, and the other behind the step."""
    pytest.importorskip("lightning")
    said = run_source(ORDER, tmp_path / "order.py")["said"]
    assert said[:6] == [
        "forward",
        "on_before_zero_grad",
        "on_before_backward",
        "backward",
        "step",
        "on_train_batch_end",
    ]
