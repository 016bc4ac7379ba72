"""Predictions and targets get one shape, by the shapes that the message names."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import TENSOR, Fact, Incident
from explainer.model.trace import CROSSED, TracedLine
from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

HEAD = """import torch
import torch.nn.functional as F
from torch import nn
net = nn.Linear(4, 1)
x, y = torch.randn(6, 4), torch.randn(6)
out = net(x)
"""
COLUMN = {"fields": {"input_shape": "[6, 1]", "target_shape": "[6]"}}
ROW = {"fields": {"input_shape": "[6]", "target_shape": "[6, 1]"}}
SHIFT = {"fields": {"left": "24", "right": "20"}}
IMAGES = {"fields": {"input_shape": "[6, 64]", "target_shape": "[6, 1, 8, 8]"}}
RIGHT = {
    "losses that callers give, of classes and of values": (
        HEAD + "def fit(crit):\n    return crit(out, y)\nprint(fit(nn.MSELoss()), fit(nn.CrossEntropyLoss()))\n",
        "crit(out, y)",
        COLUMN,
    ),
    "images of other sizes": (
        HEAD + "loss = F.mse_loss(out, y)\n",
        "loss =",
        {"fields": {"input_shape": "[6, 60]", "target_shape": "[6, 1, 8, 8]"}},
    ),
    "squeezed already": (HEAD + "loss = F.mse_loss(out.squeeze(-1), y)\n", "loss =", COLUMN),
    "shapes that differ in size": (
        HEAD + "loss = F.mse_loss(out, y)\n",
        "loss =",
        {"fields": {"input_shape": "[6, 1]", "target_shape": "[5]"}},
    ),
    "a line that is not named": (HEAD + "print(x)\nloss = F.mse_loss(out, y)\n", "print(x)", COLUMN),
    "targets that were not shifted": (HEAD + "loss = F.cross_entropy(out, y)\n", "loss =", SHIFT),
    "targets in rows that were cut": (
        HEAD + "out = out[:, :-1].reshape(-1, 2)\ny = y[:, 2:]\ny = y.reshape(-1)\nloss = F.cross_entropy(out, y)\n",
        "loss =",
        {"fields": {"left": "5", "right": "6"}},
    ),
    "predictions that are cut already": (
        HEAD + "logits = net(x)[:, :-1]\ny = x[:, 1:]\nloss = F.cross_entropy(logits.flatten(), y.flatten())\n",
        "loss =",
        SHIFT,
    ),
}
WRONG = {
    "a loss that a caller gives": (
        HEAD
        + "def fit(crit):\n    return crit(out, y)\nprint(fit(nn.BCEWithLogitsLoss()))\nfit(crit=nn.BCEWithLogitsLoss())\n",
        "crit(out, y)",
        COLUMN,
        ["return crit(out.squeeze(-1), y)"],
    ),
    "images beside rows": (
        HEAD + "loss = F.binary_cross_entropy(out, y)\n",
        "loss =",
        IMAGES,
        ["loss = F.binary_cross_entropy(out, y.flatten(1))"],
    ),
    "rows beside images": (
        HEAD + "loss = F.mse_loss(out, y)\n",
        "loss =",
        {"fields": {"input_shape": "[6, 1, 8, 8]", "target_shape": "[6, 64]"}},
        ["loss = F.mse_loss(out.flatten(1), y)"],
    ),
    "a column of predictions": (
        HEAD + "loss = F.mse_loss(out, y)\n",
        "loss =",
        COLUMN,
        ["loss = F.mse_loss(out.squeeze(-1), y)"],
    ),
    "a call as prediction": (
        HEAD + "loss = nn.MSELoss()(net(x), y)\n",
        "loss =",
        COLUMN,
        ["loss = nn.MSELoss()(net(x).squeeze(-1), y)"],
    ),
    "a column of targets": (
        HEAD + "loss = F.l1_loss(out, y)\n",
        "loss =",
        ROW,
        ["loss = F.l1_loss(out, y.squeeze(-1))"],
    ),
    "class indices in a column": (
        HEAD + "loss = F.cross_entropy(out, y)\n",
        "loss =",
        {"fields": {"target_shape": "[6, 1]"}},
        ["loss = F.cross_entropy(out, y.squeeze(-1))"],
    ),
    "shifted predictions": (
        HEAD + "logits = net(x)[..., :-1, :].contiguous()\nloss = F.cross_entropy(logits.view(-1, 2), y.view(-1))\n",
        "loss =",
        {"fields": {"left": "5", "right": "6"}},
        ["loss = F.cross_entropy(logits.view(-1, 2), y[..., 1:].contiguous().view(-1))"],
    ),
    "shifted predictions beside targets in rows": (
        HEAD + "out = out[:, :-1, :].reshape(-1, 2)\ny = y.reshape(-1)\nloss = F.cross_entropy(out, y)\n",
        "loss =",
        {"fields": {"left": "5", "right": "6"}},
        ["y = y[..., 1:].reshape(-1)"],
    ),
    "shifted predictions beside targets viewed under another name": (
        HEAD + "scores = out[:, :-1].reshape(-1, 2)\nflat = y.view(-1)\nloss = F.cross_entropy(scores, flat)\n",
        "loss =",
        {"fields": {"left": "5", "right": "6"}},
        ["flat = y[..., 1:].contiguous().view(-1)"],
    ),
    "shifted targets beside predictions in rows": (
        HEAD + "logits = out.reshape(-1, 2)\ny = x[:, 1:].reshape(-1)\nloss = F.cross_entropy(logits, y)\n",
        "loss =",
        SHIFT,
        ["logits = out[:, :-1].reshape(-1, 2)"],
    ),
    "shifted targets": (
        HEAD + "logits = net(x)\ny = x[:, 1:]\nloss = F.cross_entropy(logits.view(-1, 2), y.reshape(-1))\n",
        "loss =",
        SHIFT,
        ["logits = net(x)[:, :-1]"],
    ),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Shapes that differ otherwise, and values that are squeezed already, are left alone."""
    assert rewritten(tmp_path, "align_target_shape", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The trailing dimension or the last position goes; a second time nothing is left to do."""
    after = rewritten(tmp_path, "align_target_shape", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "align_target_shape", after, None if at not in after else at or None, **given) == after


IMPORTS = """import torch
import torch.nn.functional as F
from torch import nn
"""
# The operation that the tracer saw, words of its line, the program; nothing is written.
UNCROSSED = {
    "two losses of other values on one line": (
        "mse_loss",
        "def step(net, x, y, z):\n    loss = F.mse_loss(net(x), y) + F.mse_loss(net(z), y)\n",
    ),
    "a line without a difference": ("sub", "def step(net, x, y):\n    loss = distance(net(x), y)\n"),
    "a function of the program": (
        "smooth_l1_loss",
        "def objective(a, b):\n    return compiled(a, b, 1)\n\n\ndef step(net, x, y):\n    loss = objective(net(x), y)\n",
    ),
    "another operation of the line": ("l1_loss", "def step(net, x, y):\n    loss = F.mse_loss(net(x), y)\n"),
    "a value less a number": ("sub", "def step(net, x, y):\n    loss = (net(x) - 1).abs()\n"),
}
# With the lines that are written; the column stands first unless the id says so.
CROSSES = {
    "a module of the object": (
        "smooth_l1_loss",
        """class Fitter:
    def __init__(self, net, beta):
        self.net = net
        self.criterion = nn.SmoothL1Loss(beta=beta)

    def epoch(self, loader):
        for x, y in loader:
            loss = self.criterion(self.net(x), y)
""",
        ["loss = self.criterion(self.net(x).squeeze(-1), y)"],
    ),
    "a function with an option": (
        "smooth_l1_loss",
        "def step(net, x, y):\n    loss = F.smooth_l1_loss(net(x), y, beta=0.5)\n",
        ["loss = F.smooth_l1_loss(net(x).squeeze(-1), y, beta=0.5)"],
    ),
    "a function imported by name": (
        "huber_loss",
        "from torch.nn.functional import huber_loss\n\n\ndef step(net, x, y):\n    loss = huber_loss(net(x), y)\n",
        ["loss = huber_loss(net(x).squeeze(-1), y)"],
    ),
    "keywords": (
        "l1_loss",
        "def step(net, x, y):\n    loss = F.l1_loss(target=y, input=net(x))\n",
        ["loss = F.l1_loss(target=y, input=net(x).squeeze(-1))"],
    ),
    "a module made in place": (
        "huber_loss",
        "def step(net, x, y):\n    loss = nn.HuberLoss(delta=2.0)(net(x), y)\n",
        ["loss = nn.HuberLoss(delta=2.0)(net(x).squeeze(-1), y)"],
    ),
    "a criterion chosen by a setting": (
        "mse_loss",
        """def step(net, x, y, cfg):
    criterion = getattr(nn, cfg["loss"])()
    loss = criterion(net(x), y)
""",
        ["loss = criterion(net(x).squeeze(-1), y)"],
    ),
    "a criterion of a table": (
        "mse_loss",
        """LOSSES = {"mse": F.mse_loss, "mae": F.l1_loss}


def step(net, x, y, name):
    loss = LOSSES[name](net(x, y.mean()), y)
""",
        ["loss = LOSSES[name](net(x, y.mean()).squeeze(-1), y)"],
    ),
    "a helper of the program": (
        "smooth_l1_loss",
        """def objective(pred, price, beta):
    loss = F.smooth_l1_loss(pred, price, beta=beta)
    return loss
""",
        ["loss = F.smooth_l1_loss(pred.squeeze(-1), price, beta=beta)"],
    ),
    "a call over several lines": (
        "mse_loss",
        """class Model:
    def training_step(self, batch):
        loss = F.mse_loss(
            self(batch["x"]),
            batch["y"],
        )
""",
        ['self(batch["x"]).squeeze(-1),'],
    ),
    "a sum of terms": (
        "sub",
        "def step(net, x, y, scale):\n    loss = ((net(x) * scale + 1.0) - y).abs().mean()\n",
        ["loss = ((net(x) * scale + 1.0).squeeze(-1) - y).abs().mean()"],
    ),
    "the function of the subtraction": (
        "sub",
        "def step(net, x, y):\n    loss = torch.sub(net(x), y).square().mean()\n",
        ["loss = torch.sub(net(x).squeeze(-1), y).square().mean()"],
    ),
    "the method of the subtraction": (
        "sub",
        "def step(net, x, y):\n    loss = net(x).sub(y).square().mean()\n",
        ["loss = net(x).squeeze(-1).sub(y).square().mean()"],
    ),
    "the same two values beside it": (
        "mse_loss",
        """def step(net, x, y):
    pred = net(x)
    loss = F.mse_loss(pred, y)
    loss = loss + 0.1 * (pred - y).abs().mean()


def other(pred, y):
    return pred - y
""",
        ["loss = F.mse_loss(pred.squeeze(-1), y)", "loss = loss + 0.1 * (pred.squeeze(-1) - y).abs().mean()"],
    ),
    "targets in a column, second": (
        "mse_loss",
        "def step(net, x, y):\n    loss = F.mse_loss(net(x).mean(1), y)\n",
        ["loss = F.mse_loss(net(x).mean(1), y.squeeze(-1))"],
    ),
}


def crossed(folder: pathlib.Path, source: str, operation: str, side: str, then: str = "") -> str:
    """The program after the edit for n values that the tracer saw compared with n others in a column; `then` is what they meet."""
    program = write(folder, {"train.py": source})
    says = f"`{operation}` of [32, 1] and [32] ([n, 1] {side}) compares each with each: a loss of all pairs{then}"
    line = TracedLine(kind=CROSSED, operation=operation, file="train.py", line=line_of(source, "loss ="), says=says)
    proposal = best("align_target_shape", program, incident=Incident(traced=(line,)))
    after = splice(source, proposal.edits) if proposal is not None else source
    assert after is not None
    return after


@pytest.mark.parametrize(("operation", "source"), UNCROSSED.values(), ids=UNCROSSED)
def test_what_is_not_sure_stays(operation: str, source: str, tmp_path: pathlib.Path) -> None:
    """Where the traced line does not say which two values were compared, nothing is written."""
    assert crossed(tmp_path, IMPORTS + source, operation, "first") == IMPORTS + source


@pytest.mark.parametrize(("operation", "source", "wanted"), CROSSES.values(), ids=CROSSES)
def test_a_traced_column_loses_its_dimension(
    operation: str, source: str, wanted: list[str], tmp_path: pathlib.Path, request: pytest.FixtureRequest
) -> None:
    """The side that the tracer saw in a column is squeezed, however the loss is called."""
    side = "second" if "second" in request.node.callspec.id else "first"
    assert changed_lines(IMPORTS + source, crossed(tmp_path, IMPORTS + source, operation, side)) == wanted


NO_COLUMN = "0D or 1D target tensor expected, multi-target not supported"
NO_MASK = "only batches of spatial targets supported (3D tensors) but got targets of dimension: 4"
SPARE = {
    "a column, as the program had it": (NO_COLUMN, {"y": "[8, 1] int64 on cpu", "out": "[8, 3] float32 on cpu"}, "y.squeeze(1)", None),
    "a mask with a channel": (NO_MASK, {"y": "[8, 1, 4, 4] int64 on cpu"}, "y.squeeze(1)", None),
    "one-hot rows": (NO_COLUMN, {"y": "[8, 3] int64 on cpu", "out": "[8, 3] float32 on cpu"}, "y.argmax(dim=1)", "unsafe"),
    "a text alone": (NO_COLUMN, {}, "y.squeeze(1)", "unsafe"),
    "several labels each": (NO_COLUMN, {"y": "[8, 2] int64 on cpu", "out": "[8, 3] float32 on cpu"}, None, None),
}  # fmt: skip


@pytest.mark.parametrize(("message", "seen", "wanted", "applicability"), SPARE.values(), ids=SPARE)
def test_class_indices_with_a_dimension_too_many(
    tmp_path: pathlib.Path, message: str, seen: dict[str, str], wanted: str | None, applicability: str | None
) -> None:
    """What the live program says of the targets decides; a text alone makes a guess, and says so."""
    source = IMPORTS + "def step(net, x, y):\n    out = net(x)\n    loss = F.cross_entropy(out, y)\n"
    program = write(tmp_path, {"train.py": source})
    facts = tuple(Fact(name=TENSOR, value=f"{name}: {one}") for name, one in seen.items())
    incident = replace(failed({"train.py": line_of(source, "loss =")}, message), facts=facts)
    proposal = best("align_target_shape", program, incident=incident)
    if wanted is None:
        assert proposal is None
        return
    assert proposal is not None
    assert proposal.applicability == applicability
    after = splice(source, proposal.edits)
    assert after is not None
    assert changed_lines(source, after) == [f"loss = F.cross_entropy(out, {wanted})"]


@pytest.mark.parametrize(
    ("then", "wanted"),
    [
        ("", "loss = (w * ((net(x) - y) ** 2).squeeze(-1)).mean()"),
        (" that meets a row", "loss = (w * ((net(x) - y) ** 2).squeeze(-1)).mean()"),
        (" that meets a column", "loss = (w.unsqueeze(-1) * (net(x) - y) ** 2).mean()"),
    ],
)
def test_a_product_takes_the_form_of_what_it_meets(then: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """A column beside a column stays one, and the row is stood up."""
    source = IMPORTS + "def step(net, x, y, w):\n    loss = (w * (net(x) - y) ** 2).mean()\n"
    assert changed_lines(source, crossed(tmp_path, source, "mul", "second", then)) == [wanted]
