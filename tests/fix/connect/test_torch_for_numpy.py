"""A function that goes through NumPy and back computes the same in torch, and is differentiated; or it stays whole."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, failed, line_of, write

HEAD = """import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view

"""
RIGHT = {
    "a mean of a list": "    losses = [x.sum()]\n    y = np.abs(losses)  # numpy()\n    return y\n",
    "nothing comes back": "    print(np.abs(x.detach().numpy()).mean())\n    return x\n",
    "a call that torch has not": "    y = np.interp(x.detach().numpy(), GRID, VALUES)\n    return torch.from_numpy(y)\n",
    "a function that is made for arrays": "    y = smooth(x.detach().numpy())\n    return torch.from_numpy(y)\n",
    "a place that is not known": "    y = net(x).detach().cpu().numpy() * np.hanning(6)\n    return torch.from_numpy(y)\n",
    "numbers beside arrays": "    y = np.array([0.0, x.detach().numpy().sum()])\n    return torch.from_numpy(y)\n",
    "what is kept elsewhere": "    y = np.exp(x.detach().numpy())\n    SEEN.append(y)\n    KEPT.rows.append(y)\n    return torch.from_numpy(y)\n",
    "another precision": "    y = x.detach().numpy().astype(np.float64)\n    return torch.from_numpy(y)\n",
    "a deviation by n - 1": "    y = np.std(x.detach().numpy(), ddof=1)\n    return torch.tensor(y)\n",
    "positions": "    y = np.abs(x.detach().numpy()).argsort()\n    return torch.from_numpy(y)\n",
    "a sort by another way": "    y = np.sort(x.detach().numpy(), axis=1, kind='stable')\n    return torch.from_numpy(y)\n",
    "an axis order": "    y = np.abs(x.detach().numpy()).transpose(1, 0)\n    return torch.from_numpy(y)\n",
}
WRONG = {
    "a function that is given the tensor": "    std = np.exp(0.5 * x)  # calls numpy() on it\n    return std * torch.ones(6)\n",
    "functions that are given the tensor, and a join": "    s = np.sin(2 * x)  # calls numpy() on it\n    c = np.cos(2 * x)\n    return torch.as_tensor(np.concatenate([s, c], axis=-1))\n",
    "in one line": "    return torch.from_numpy(np.log(np.square(x.detach().cpu().numpy()).mean(axis=-1) + 1e-5))\n",
    "in several": "    a = x.detach().numpy()\n    b = np.maximum(a, 0.0) - np.minimum(a, 0)\n    return torch.from_numpy(b * np.pi).to(x.device)\n",
    "a deviation": "    a = x.detach().numpy()\n    a = (a - a.mean(-1, keepdims=True)) / (a.std(-1, keepdims=True) + 1e-3)\n    return torch.tensor(a * np.std(a, axis=0))\n",
    "the largest": "    a = np.abs(x.detach().cpu().numpy())\n    return torch.as_tensor(a / a.max(1, keepdims=True) + np.max(a), dtype=torch.float32)\n",
    "windows": "    w = sliding_window_view(np.exp(x.detach().numpy()), 2, axis=-1)[..., ::2, :]\n    return torch.from_numpy(w.sum(-1))\n",
    "windows of a product": "    a = x.detach().numpy()\n    return torch.from_numpy(sliding_window_view(a * 2, 3, axis=1).mean(axis=-1))\n",
    "a new axis and a join": "    a = np.arctan(x.detach().numpy())[:, np.newaxis]\n    return torch.from_numpy(np.concatenate([a, a ** 2], axis=1).astype(np.float32))\n",
    "ends that stay NumPy's": "    a = x.detach().numpy()\n    ends = np.cumsum([1, 2])\n    starts = ends - np.array([1, 2])\n    rows = [a[i:j].mean(axis=0) for i, j in zip(starts, ends)]\n    return torch.from_numpy(np.stack(rows))\n",
    "pieces": "    parts = np.split(x.detach().numpy(), np.cumsum([1, 2])[:-1])\n    rows = []\n    for k, part in enumerate(parts):\n        rows.append(part.sum(axis=0) / (k + 1))\n    return torch.tensor(np.array(rows))\n",
    "a list of arrays": "    rows = [row * 2 for row in x.detach().numpy()]\n    return torch.tensor(rows) + torch.tensor(np.mean(rows, axis=0))\n",
    "an array that is filled": "    a = x.detach().numpy()\n    out = np.zeros((2, 6), dtype=np.float32)\n    for i in range(2):\n        out[i] = a[i : i + 2].sum(0)\n    return torch.from_numpy(out)\n",
    "a window that torch has not": "    w = np.hanning(6)\n    a = x.detach().cpu().numpy() * w + 0.5 * np.blackman(6)\n    return torch.from_numpy(a)\n",
    "what never comes back": "    seen = x.detach().numpy().tolist()\n    a = np.sqrt(np.abs(x.detach().numpy()) + 1)\n    return torch.from_numpy(a) * len(seen)\n",
    "an array of a tensor": "    a = np.array(x.detach())  # numpy()\n    least = np.sort(a, axis=1)[:, -2, None]\n    a[a < least] = 0\n    return torch.from_numpy(a / np.maximum(a.sum(1, keepdims=True), 1e-9))\n",
    "an array as it is": "    a = np.asarray(x.detach().cpu())  # numpy()\n    return torch.from_numpy(np.square(a))\n",
    "a spectrum": "    return torch.from_numpy(np.abs(np.fft.rfft(x.detach().numpy(), axis=-1)).clip(0.1, 9).copy())\n",
}  # fmt: skip


def edited(folder: pathlib.Path, source: str) -> str:
    """The program after the edit, for a failure in its function."""
    program = write(folder, {"train.py": source})
    proposal = best("torch_for_numpy", program, incident=failed({"train.py": line_of(source, "numpy()")}))
    after = splice(source, proposal.edits) if proposal is not None else source
    assert after is not None
    return after


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_what_torch_does_not_do_alike_stays(tmp_path: pathlib.Path, body: str) -> None:
    """One call without a form leaves the whole function as it is."""
    source = HEAD + "def measure(x):\n" + body
    assert edited(tmp_path, source) == source


@pytest.mark.torch
@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_the_values_are_the_same_and_have_a_gradient(tmp_path: pathlib.Path, body: str) -> None:
    """What the function gave before, it gives now; and it is differentiated."""
    torch = pytest.importorskip("torch")
    np = pytest.importorskip("numpy")
    source = HEAD + "def measure(x):\n" + body
    after = edited(tmp_path, source)
    assert ".detach().numpy()" not in after.replace(".numpy().tolist()", "")
    spaces: list[dict[str, object]] = [{}, {}]
    for text, space in zip((source, after), spaces, strict=True):
        exec(text, space)  # noqa: S102 - the program of the test
    torch.manual_seed(0)
    x = torch.randn(3, 6, requires_grad=True)
    before = spaces[0]["measure"](x.detach())  # type: ignore[operator]
    now = spaces[1]["measure"](x)  # type: ignore[operator]
    np.testing.assert_allclose(now.detach(), before, rtol=2e-5, atol=1e-6)
    (gradient,) = torch.autograd.grad(now.sum(), x)
    assert bool(gradient.isfinite().all())
    assert bool(gradient.abs().sum() > 0)


SCALER = """import numpy as np
import torch


class Scaler:
    def __init__(self, table):
        self.mean, self.unit = table.mean(0).astype(np.float32), 10.0
        self.mean = table.mean(0).astype(np.float32)

    def restore(self, scaled):
        return torch.from_numpy(scaled.detach().numpy() * self.unit + self.mean)


scaler = Scaler(np.ones((4, 3)))
made = torch.zeros(2, 3, requires_grad=True)
loss = scaler.restore(made).sum()
loss.backward()
"""


@pytest.mark.torch
def test_arrays_of_the_object_become_tensors(tmp_path: pathlib.Path) -> None:
    """Its numbers stay numbers; the mended program has a gradient."""
    pytest.importorskip("torch")
    at = {"train.py": line_of(SCALER, "return torch.from_numpy")}
    found = best("torch_for_numpy", write(tmp_path, {"train.py": SCALER}), incident=failed(at))
    assert found is not None
    after = str(splice(SCALER, found.edits))
    assert "return (scaled * self.unit + torch.as_tensor(self.mean))" in after
    names: dict[str, object] = {}
    exec(compile(after, "after", "exec"), names)  # noqa: S102 - the program of a test
    assert names["made"].grad.tolist() == [[10.0] * 3] * 2  # type: ignore[attr-defined]
