"""What a capture of a CUDA graph would have to wait for is computed without a selection, to the same value and gradients."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from tests.fix.mending import run
from tests.fix.rewriting import changed_lines, failed, line_of, rewritten, write

SAID = "CUDA error: operation not permitted when stream is capturing"
HEAD = """import torch
import torch.nn.functional as F
torch.manual_seed(0)
x, y, z = torch.randn(4, 6, requires_grad=True), torch.randn(4, 6), torch.randn(4, 6, 3)
seen, rows, scale = torch.rand(4, 6) > 0.4, torch.rand(4) > 0.4, torch.tensor([1.0, 2.0, 3.0])
labels, beta = torch.randint(3, (4, 6)), 0.7
def loss_of(x, y, z, seen, rows, scale, labels):
"""
CALL = """loss = loss_of(x, y, z, seen, rows, scale, labels)
loss.backward()
out = torch.cat([loss.detach()[None], x.grad.flatten()])
"""
TENSORS = {
    "x": "[4, 6] float32 on cuda", "y": "[4, 6] float32 on cuda", "z": "[4, 6, 3] float32 on cuda", "seen": "[4, 6] bool on cuda",
    "rows": "[4] bool on cuda", "scale": "[3] float32 on cuda", "labels": "[4, 6] int64 on cuda",
}  # fmt: skip
WEIGHED = {
    "the mean of a selection": ("    return (x - y).square()[seen].mean()\n", ["return torch.where(seen, (x - y).square(), 0).sum() / seen.sum()"]),
    "of two selections": ("    return (x[seen] - y[seen]).abs().mean()\n", ["return torch.where(seen, (x - y).abs(), 0).sum() / seen.sum()"]),
    "of what is not masked": ("    return (x - y)[~seen].exp().mean()\n", ["return torch.where(~seen, (x - y).exp(), 0).sum() / (~seen).sum()"]),
    "by a comparison": ("    return x[y > 0].square().mean()\n", ["return torch.where(y > 0, x.square(), 0).sum() / (y > 0).sum()"]),
    "the sum": ("    return 2 * x.masked_select(seen).square().sum()\n", ["return 2 * torch.where(seen, x.square(), 0).sum()"]),
    "beside another term": (
        "    return x.mean() + beta * torch.mean((x * y)[seen]) ** 2\n",
        ["return x.mean() + beta * (torch.where(seen, x * y, 0).sum() / seen.sum()) ** 2"],
    ),
    "of rows of a product": ("    return torch.mean((x * y)[rows])\n", ["return torch.where(rows, (x * y).mean(-1), 0).sum() / rows.sum()"]),
    "of rows": ("    return x[rows].square().mean()\n", ["return torch.where(rows, x.square().mean(-1), 0).sum() / rows.sum()"]),
    "under a name, with axes behind the mask": (
        "    gap = (x.unsqueeze(-1) - z)[seen]\n    return torch.maximum(scale * gap, (scale - 4) * gap).mean()\n",
        ["gap = x.unsqueeze(-1) - z", "return torch.where(seen, torch.maximum(scale * gap, (scale - 4) * gap).mean(-1), 0).sum() / seen.sum()"],
    ),
    "under a name, reduced twice": (
        "    gap = x[seen] - y[seen]\n    return gap.square().mean() + gap.abs().sum()\n",
        ["gap = x - y", "return (torch.where(seen, gap.square(), 0).sum() / seen.sum()) + torch.where(seen, gap.abs(), 0).sum()"],
    ),
    "a loss": ("    return F.mse_loss(x[seen], y[seen])\n", ['return torch.where(seen, F.mse_loss(x, y, reduction="none"), 0).sum() / seen.sum()']),
    "a loss with options": (
        "    return F.smooth_l1_loss((x * 2)[seen], y[seen], beta=beta, reduction='sum')\n",
        ['return torch.where(seen, F.smooth_l1_loss(x * 2, y, beta=beta, reduction="none"), 0).sum()'],
    ),
    "classes": (
        "    return F.cross_entropy((x.unsqueeze(-1) * z)[seen], labels[seen])\n",
        ["return F.cross_entropy((x.unsqueeze(-1) * z).flatten(0, 1), labels.masked_fill(~seen, -100).flatten())"],
    ),
}  # fmt: skip
NAMED = {
    "sorted on the way": "    return (x - y)[seen].sort()[0].mean()\n",
    "with its number of elements": "    gap = x[seen]\n    return gap.square().sum() / gap.numel()\n",
    "a part of the mean": "    return x[rows].mean(0).square().sum()\n",
    "by two masks": "    return (x[seen] - y[y > 0]).mean()\n",
    "beside what has as many axes": "    return (x[rows] * y[:2]).square().mean()\n",
    "bound later": "    gap = x[seen]\n    weight = y[seen]\n    return (gap * weight).mean()\n",
    "a spread": "    return x[seen].std()\n",
    "a value for the host": "    return x.square().mean() * x.abs().max().item()\n",
}


def edited(folder: pathlib.Path, body: str, **context: object) -> str:
    """The program after the edit for its first line."""
    at = body.splitlines()[0].strip()
    return rewritten(
        folder, "mask_without_indexing", HEAD + body + CALL, at, message=SAID, **{"tensors": TENSORS, **context}
    )


@pytest.mark.parametrize(("body", "wanted"), WEIGHED.values(), ids=WEIGHED)
def test_all_elements_are_weighed(tmp_path: pathlib.Path, body: str, wanted: list[str]) -> None:
    """The loss and its gradients are those of the selection."""
    torch = pytest.importorskip("torch")
    after = edited(tmp_path, body)
    assert changed_lines(HEAD + body + CALL, after) == wanted
    before, behind = (run(one, tmp_path / name)["out"] for one, name in ((HEAD + body + CALL, "a.py"), (after, "b.py")))
    assert torch.allclose(before, behind, atol=1e-6)


@pytest.mark.parametrize("body", NAMED.values(), ids=NAMED)
def test_what_cannot_be_weighed_is_named(tmp_path: pathlib.Path, body: str) -> None:
    """Its line leads, and nothing is written."""
    source = HEAD + body + CALL
    program = write(tmp_path, {"train.py": source})
    at = line_of(source, body.splitlines()[0].strip())
    context = Context(program=program, incident=failed({"train.py": at}, SAID, tensors=TENSORS))
    (found,) = find_codemod("mask_without_indexing")(context)
    assert (found.edits, found.culprit.line) == ((), at)


def test_only_a_capture_asks_for_it(tmp_path: pathlib.Path) -> None:
    """Another failure at the line, and tensors of which nothing was seen."""
    body = WEIGHED["the mean of a selection"][0]
    assert edited(tmp_path, body, tensors={}) == HEAD + body + CALL
    source = HEAD + body + CALL
    said = "The shape of the mask [4] at index 0 does not match the shape of the indexed tensor"
    assert rewritten(tmp_path, "mask_without_indexing", source, "return", message=said, tensors=TENSORS) == source


def test_the_statement_of_the_capture_is_not_the_line(tmp_path: pathlib.Path) -> None:
    """What its end raises names what broke it."""
    source = (
        HEAD + "    return (x - y)[seen].mean()\nwith torch.cuda.graph(torch.cuda.CUDAGraph()):\n    loss_of(x, y)\n"
    )
    program = write(tmp_path, {"train.py": source})
    inner = failed({"train.py": line_of(source, "return")}, SAID).exceptions
    outer = failed(
        {"train.py": line_of(source, "with torch")}, "operation failed due to a previous error during capture"
    )
    incident = failed(tensors=TENSORS)
    context = Context(
        program=program,
        incident=type(incident)(exceptions=(*inner, *outer.exceptions), facts=incident.facts),
    )
    (found,) = find_codemod("mask_without_indexing")(context)
    assert found.edits
    assert found.culprit.line == line_of(source, "return")
