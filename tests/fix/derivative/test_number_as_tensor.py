"""Under `vmap` a number that is read from a tensor stays a tensor, and a constant."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

MESSAGE = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor"
)
TOP = "import math\nimport torch\n"
LINES = {
    "scale = max(target.std().item(), floor)": "scale = target.std().clamp(min=floor)",
    "scale = max(floor, target.std().item())": "scale = target.std().clamp(min=floor)",
    "scale = min(float(pred.abs().max()), 10.0)": "scale = pred.abs().max().detach().clamp(max=10.0)",
    "loss = error / target.std().item()": "loss = error / target.std()",
    "loss = error / (pred + target).std().item()": "loss = error / (pred + target).std().detach()",
    "loss = error * (target + 1).item()": "loss = error * (target + 1)",
    "loss = error / math.sqrt(target.var().item())": "loss = error / torch.sqrt(target.var())",
    "width = max(target.std().item(), x.std().item())": "width = torch.maximum(target.std(), x.std().detach())",
    "return float(loss)": "return loss.detach()",
}


@pytest.mark.parametrize("line", LINES)
def test_the_number_stays_a_tensor(line: str, tmp_path: pathlib.Path) -> None:
    """A bound becomes a clamp, a function of math one of torch; what may need a gradient is detached, as the number was."""
    source = f"{TOP}def f(error, pred, target, x, floor, loss):\n    {line}\n"
    after = rewritten(tmp_path, "number_as_tensor", source, line.partition(" ")[0], message=MESSAGE)
    assert diff_lines(source, after) == [f"-    {line}", f"+    {LINES[line]}"]


@pytest.mark.parametrize("line", ["loss = error / target.std()", "loss = float(1)", "loss = error.item"])
def test_what_reads_no_number(line: str, tmp_path: pathlib.Path) -> None:
    """Lines without such a call stay, and so does everything where another message was raised."""
    source = f"{TOP}def f(error, target):\n    {line}\n"
    assert rewritten(tmp_path, "number_as_tensor", source, "loss", message=MESSAGE) == source
    other = source.replace(line, "loss = error.item()")
    assert rewritten(tmp_path, "number_as_tensor", other, "loss", message="it failed") == other


@pytest.mark.torch
def test_the_gradients_are_those_of_a_loop(tmp_path: pathlib.Path) -> None:
    """`vmap(grad(f))` gives what the function with its number gives for each sample by itself."""
    torch = pytest.importorskip("torch")
    line = "    return (w * x - target).pow(2).mean() / max(target.std().item(), 0.1) / (w * x).abs().max().item()\n"
    source = f"{TOP}def f(w, x, target):\n{line}"
    whole = source
    for _ in range(2):
        whole = rewritten(tmp_path, "number_as_tensor", whole, "return", message=MESSAGE)
    spaces: list[dict] = [{}, {}]
    exec(source, spaces[0])  # noqa: S102 - what is tested is the text
    exec(whole, spaces[1])  # noqa: S102
    torch.manual_seed(0)
    w, x, target = torch.randn(3), torch.randn(4, 3), torch.randn(4, 3)
    found = torch.vmap(torch.func.grad(spaces[1]["f"]), in_dims=(None, 0, 0))(w, x, target)
    for row, one, aim in zip(found, x, target, strict=True):
        leaf = w.clone().requires_grad_()
        spaces[0]["f"](leaf, one, aim).backward()
        assert torch.allclose(row, leaf.grad, atol=1e-5)
