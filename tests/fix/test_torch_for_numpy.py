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
    "noise": "    y = x.detach().numpy() + np.random.randn(3)\n    return torch.from_numpy(y)\n",
    "another precision": "    y = x.detach().numpy().astype(np.float64)\n    return torch.from_numpy(y)\n",
    "a deviation by n - 1": "    y = np.std(x.detach().numpy(), ddof=1)\n    return torch.tensor(y)\n",
    "positions": "    y = np.abs(x.detach().numpy()).argsort()\n    return torch.from_numpy(y)\n",
    "an axis order": "    y = np.abs(x.detach().numpy()).transpose(1, 0)\n    return torch.from_numpy(y)\n",
}
WRONG = {
    "a function that is given the tensor": "    std = np.exp(0.5 * x)  # calls numpy() on it\n    return std * torch.ones(6)\n",
    "in one line": "    return torch.from_numpy(np.log(np.square(x.detach().cpu().numpy()).mean(axis=-1) + 1e-5))\n",
    "in several": "    a = x.detach().numpy()\n    b = np.maximum(a, 0.0) - np.minimum(a, 0)\n    return torch.from_numpy(b * np.pi).to(x.device)\n",
    "a deviation": "    a = x.detach().numpy()\n    a = (a - a.mean(-1, keepdims=True)) / (a.std(-1, keepdims=True) + 1e-3)\n    return torch.tensor(a * np.std(a, axis=0))\n",
    "the largest": "    a = np.abs(x.detach().cpu().numpy())\n    return torch.as_tensor(a / a.max(1, keepdims=True) + np.max(a), dtype=torch.float32)\n",
    "windows": "    w = sliding_window_view(np.exp(x.detach().numpy()), 2, axis=-1)[..., ::2, :]\n    return torch.from_numpy(w.sum(-1))\n",
    "windows of a product": "    a = x.detach().numpy()\n    return torch.from_numpy(sliding_window_view(a * 2, 3, axis=1).mean(axis=-1))\n",
    "a new axis and a join": "    a = np.arctan(x.detach().numpy())[:, np.newaxis]\n    return torch.from_numpy(np.concatenate([a, a ** 2], axis=1).astype(np.float32))\n",
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
    assert ".numpy()" not in after
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
