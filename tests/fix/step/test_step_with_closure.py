"""A step of LBFGS without a closure gets the one that its statements make, or none."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from explainer.fix.codemod import Context, find_codemod
from tests.fix.rewriting import diff_lines, failed, line_of, rewritten, write

SAID = "LBFGS.step() missing 1 required positional argument: 'closure'"
HEAD = """import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.LBFGS(net.parameters(), max_iter=3)
x, y = torch.randn(8, 4), torch.randn(8, 1)
lossfn = nn.MSELoss()
"""
BODY = """    opt.zero_grad()
    loss = lossfn(net(x), y)
    loss.backward()
    opt.step()
"""
RIGHT = {
    "the output is read after the step": HEAD + """for _ in range(3):
    opt.zero_grad()
    out = net(x)
    loss = lossfn(out, y)
    loss.backward()
    opt.step()
    print(out.mean().item())
""",
    "the output is read in the next round": HEAD + """h = torch.zeros(8, 4)
for _ in range(3):
    opt.zero_grad()
    out = net(x + h.detach())
    loss = lossfn(out, y)
    loss.backward()
    opt.step()
    h = out.expand(8, 4)
""",
    "a name that the forward reads and binds": HEAD + """for _ in range(3):
    opt.zero_grad()
    total = 0.0
    y = net(x) * 0.1 + y
    loss = lossfn(net(x), y)
    loss.backward()
    opt.step()
""",
    "a scaler": HEAD + """scaler = torch.amp.GradScaler("cpu")
for _ in range(3):
    opt.zero_grad()
    loss = lossfn(net(x), y)
    scaler.scale(loss).backward()
    opt.step()
""",
    "two losses": HEAD + """for _ in range(3):
    opt.zero_grad()
    loss = lossfn(net(x), y)
    other = net(x).abs().mean()
    loss.backward()
    other.backward()
    opt.step()
""",
    "gradients of several batches": HEAD + """for _ in range(3):
    opt.zero_grad()
    for part in range(2):
        loss = lossfn(net(x[part::2]), y[part::2])
        loss.backward()
    opt.step()
""",
    "cleared every other round": HEAD + """for at in range(4):
    if at % 2 == 0:
        opt.zero_grad()
    loss = lossfn(net(x), y)
    loss.backward()
    opt.step()
""",
    "gradients that are written down before the step": HEAD + """kept = []
for _ in range(3):
    opt.zero_grad()
    loss = lossfn(net(x), y)
    loss.backward()
    kept.append(net.weight.grad.clone())
    opt.step()
""",
    "a way out in the middle": HEAD + """for _ in range(3):
    opt.zero_grad()
    loss = lossfn(net(x), y)
    if not loss.isfinite():
        break
    loss.backward()
    opt.step()
""",
    "the next batch is drawn in the forward": HEAD + """rows = iter([x, x, x])
for _ in range(3):
    opt.zero_grad()
    loss = lossfn(net(next(rows)), y)
    loss.backward()
    opt.step()
""",
    "the backward is somewhere else": HEAD + """def learn():
    opt.zero_grad()
    loss = lossfn(net(x), y)
    loss.backward()
for _ in range(3):
    learn()
    opt.step()
""",
    "another optimizer's step between": HEAD + """other = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    loss = lossfn(net(x), y)
    loss.backward()
    other.step()
    opt.step()
""",
}  # fmt: skip
WRONG = {
    "a closure that is there": (
        HEAD + """def evaluate():
    opt.zero_grad()
    loss = lossfn(net(x), y)
    loss.backward()
    return loss
for _ in range(3):
    loss = evaluate()
    opt.step()
print(loss.item())
""",
        ["-    loss = evaluate()", "-    opt.step()", "+    loss = opt.step(evaluate)"],
    ),
    "a loss that nobody reads": (HEAD + "for _ in range(3):\n" + BODY, [
        "-    opt.zero_grad()", "-    loss = lossfn(net(x), y)", "-    loss.backward()", "-    opt.step()",
        "+    def closure():", "+        opt.zero_grad()", "+        loss = lossfn(net(x), y)", "+        loss.backward()",
        "+        return loss", "+", "+    opt.step(closure)"]),
    "a loss that is printed, in a function": (
        HEAD + "def fit(rounds):\n    for _ in range(rounds):\n"
        + "".join(f"    {line}\n" for line in BODY.splitlines()) + "        print(loss.item())\nfit(3)\n", [
        "-        opt.zero_grad()", "-        loss = lossfn(net(x), y)", "-        loss.backward()", "-        opt.step()",
        "+        def closure():", "+            opt.zero_grad()", "+            loss = lossfn(net(x), y)",
        "+            loss.backward()", "+            return loss", "+", "+        loss = opt.step(closure)"]),
    "data before the forward, cleared behind the step": (HEAD + """for at in range(3):
    rows = torch.randperm(8)[:6]
    out = net(x[rows])  # the forward
    loss = lossfn(out, y[rows])
    loss.backward()
    # now step
    opt.step()
    opt.zero_grad()
""", ["-    out = net(x[rows])  # the forward", "-    loss = lossfn(out, y[rows])", "-    loss.backward()",
      "+    def closure():", "+        opt.zero_grad()", "+        out = net(x[rows])  # the forward",
      "+        loss = lossfn(out, y[rows])", "+        loss.backward()", "+        return loss", "+",
      "-    opt.step()", "-    opt.zero_grad()", "+    opt.step(closure)"]),
    "cleared before the data are drawn": (HEAD + """for at in range(3):
    net.zero_grad()
    rows = torch.randperm(8)[:6]
    loss = lossfn(net(x[rows]), y[rows])
    loss.backward()
    opt.step()
""", ["-    net.zero_grad()", "-    loss = lossfn(net(x[rows]), y[rows])", "-    loss.backward()", "-    opt.step()",
      "+    def closure():", "+        net.zero_grad()", "+        loss = lossfn(net(x[rows]), y[rows])",
      "+        loss.backward()", "+        return loss", "+", "+    opt.step(closure)"]),
    "the loss is reported before the step": (HEAD + """total, losses = 0.0, []
for at in range(3):
    opt.zero_grad()
    loss = lossfn(net(x), y)
    losses.append(loss.item())
    loss.backward()
    if at % 2:
        print(at, loss.item())
    total += loss.item()
    opt.step()
""", ["-    opt.zero_grad()", "-    loss = lossfn(net(x), y)", "+    def closure():", "+        opt.zero_grad()",
      "+        loss = lossfn(net(x), y)", "+        loss.backward()", "+        return loss", "+",
      "+    loss = opt.step(closure)", "-    loss.backward()", "-    opt.step()"]),
    "an expression is sent back": (HEAD + """for at in range(3):
    opt.zero_grad()
    lossfn(net(x), y).backward()
    opt.step()
""", ["-    opt.zero_grad()", "-    lossfn(net(x), y).backward()", "-    opt.step()", "+    def closure():",
      "+        opt.zero_grad()", "+        loss = lossfn(net(x), y)", "+        loss.backward()", "+        return loss",
      "+", "+    opt.step(closure)"]),
    "autocast and a penalty that is added": (HEAD + """for at in range(3):
    opt.zero_grad()
    with torch.autocast("cpu", enabled=False):
        out = net(x)
        loss = lossfn(out, y)
    for p in net.parameters():
        loss = loss + 1e-3 * p.pow(2).sum()
    loss.backward()
    opt.step()
    print(float(loss))
""", ["-    opt.zero_grad()", "-    with torch.autocast(\"cpu\", enabled=False):", "-        out = net(x)",
      "-        loss = lossfn(out, y)", "-    for p in net.parameters():", "-        loss = loss + 1e-3 * p.pow(2).sum()",
      "-    loss.backward()", "-    opt.step()", "+    def closure():", "+        opt.zero_grad()",
      "+        with torch.autocast(\"cpu\", enabled=False):", "+            out = net(x)", "+            loss = lossfn(out, y)",
      "+        for p in net.parameters():", "+            loss = loss + 1e-3 * p.pow(2).sum()", "+        loss.backward()",
      "+        return loss", "+", "+    loss = opt.step(closure)"]),
    "gradients are clipped": (HEAD + """for at in range(3):
    opt.zero_grad()
    loss = lossfn(net(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
""", ["-    opt.zero_grad()", "-    loss = lossfn(net(x), y)", "-    loss.backward()",
      "-    nn.utils.clip_grad_norm_(net.parameters(), 1.0)", "-    opt.step()", "+    def closure():",
      "+        opt.zero_grad()", "+        loss = lossfn(net(x), y)", "+        loss.backward()",
      "+        nn.utils.clip_grad_norm_(net.parameters(), 1.0)", "+        return loss", "+", "+    opt.step(closure)"]),
}  # fmt: skip


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_what_makes_no_closure_stays(source: str, tmp_path: pathlib.Path) -> None:
    """Nothing is edited where more than the loss leaves the statements, or where they are no single evaluation."""
    assert rewritten(tmp_path, "step_with_closure", source, "opt.step()", message=SAID) == source


def test_the_step_is_named_where_no_closure_can_be_written(tmp_path: pathlib.Path) -> None:
    """The line of the step stands without an edit."""
    source = RIGHT["two losses"]
    program = write(tmp_path, {"train.py": source})
    incident = failed({"train.py": line_of(source, "opt.step()")}, SAID)
    (found,) = find_codemod("step_with_closure")(Context(program=program, incident=incident))
    assert (found.edits, found.culprit.line) == ((), line_of(source, "opt.step()"))


def test_an_optimizer_that_is_not_lbfgs_stays(tmp_path: pathlib.Path) -> None:
    """What an optimizer of another library asks of its closure is not known."""
    source = (HEAD + "for _ in range(3):\n" + BODY).replace("torch.optim.LBFGS", "other.SAM")
    said = "step() missing 1 required positional argument: 'closure'"
    assert rewritten(tmp_path, "step_with_closure", source, "opt.step()", message=said) == source


@pytest.mark.parametrize(("source", "changes"), WRONG.values(), ids=WRONG)
def test_a_step_gets_its_closure(source: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The evaluation moves into a closure; what reports the loss follows the step."""
    after = rewritten(tmp_path, "step_with_closure", source, "opt.step()", message=SAID)
    assert diff_lines(source, after) == changes


@pytest.mark.slow
@pytest.mark.parametrize("source", [one for one, _ in WRONG.values()], ids=WRONG)
def test_the_result_trains(source: str, tmp_path: pathlib.Path) -> None:
    """The repaired program runs, and its loss falls."""
    after = rewritten(tmp_path, "step_with_closure", source, "opt.step()", message=SAID)
    check = "first = lossfn(net(x), y).item()\n"
    text = after.replace("lossfn = nn.MSELoss()\n", "lossfn = nn.MSELoss()\n" + check)
    subprocess.run([sys.executable, "-c", text + "\nassert lossfn(net(x), y).item() < first\n"], check=True)
