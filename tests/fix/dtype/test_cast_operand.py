"""An operation that is not there for a dtype gets float32."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "import torch\nfrom torch import nn\na = torch.eye(3).half()\nn = torch.tensor([3, 5])\ny, x = torch.zeros(5, 2), torch.ones(2, 2)\ni = torch.tensor([0, 2])\n"
CHOLESKY = {"fields": {"kernel": "cholesky_cpu", "found_type": "Half"}}
MEAN = {"message": "mean(): could not infer output dtype. Got: Long"}
WRITTEN = {"options": {"written": True}}
SPECTRUM = {"message": "Unsupported dtype BFloat16"}
RIGHT = {
    "whole numbers, which would cut fractions off": (
        HEAD + "y.index_add_(0, i, x)\n",
        "y.index",
        WRITTEN | {"fields": {"left_type": "Long", "right_type": "Float"}},
    ),
    "a transform of float32": (HEAD + "f = torch.fft.fft(a.float()).real\n", "f =", SPECTRUM),
    "another message about a transform": (HEAD + "f = torch.fft.fft(a).real\n", "f =", MEAN),
    "cast already": (HEAD + "f = torch.linalg.cholesky(a.float())\n", "f =", CHOLESKY),
    "another operation on the line": (HEAD + "f = torch.linalg.inv(a)\n", "f =", CHOLESKY),
    "the operation on another line": (HEAD + "f = torch.linalg.cholesky(a)\nprint(f)\n", "print(f)", CHOLESKY),
    "a number written": (HEAD + "y[i] = 0\n", "y[i]", WRITTEN),
    "a number scattered": (HEAD + "y.scatter_(0, i.unsqueeze(1), 1.0)\n", "y.scatter", WRITTEN),
    "a cast value written": (HEAD + "y[i] = x.to(y.dtype)\n", "y[i]", WRITTEN),
    "no assignment to a part": (HEAD + "y = x\n", "y = x", WRITTEN),
}
WRONG = {
    "a function": (HEAD + "f = torch.linalg.cholesky(a)\n", "f =", CHOLESKY, ["f = torch.linalg.cholesky(a.float())"]),
    "an expression": (
        HEAD + "f = torch.linalg.cholesky(a @ a)\n",
        "f =",
        CHOLESKY,
        ["f = torch.linalg.cholesky((a @ a).float())"],
    ),
    "a method": (HEAD + "m = n.mean()\n", "m =", MEAN, ["m = n.float().mean()"]),
    "a mean among others": (
        HEAD + "m = x.sum() / n.mean()\n",
        "m =",
        {"fields": {"kernel": "mean"}},
        ["m = x.sum() / n.float().mean()"],
    ),
    "a value written by index": (HEAD + "y[i] = x\n", "y[i]", WRITTEN, ["y[i] = x.to(y.dtype)"]),
    "a sum added by index": (
        HEAD + "y.index_add_(0, i, x * 2)\n",
        "y.index",
        WRITTEN,
        ["y.index_add_(0, i, (x * 2).to(y.dtype))"],
    ),
    "a source by name": (
        HEAD + "y = y.scatter_add(0, i, src=x)\n",
        "y = y",
        WRITTEN,
        ["y = y.scatter_add(0, i, src=x.to(y.dtype))"],
    ),
    "a spectrum's real part": (
        HEAD + "f = torch.fft.fft(a).real\n",
        "f =",
        SPECTRUM,
        ["f = torch.fft.fft(a.float()).real.to(a.dtype)"],
    ),
    "a spectrum's magnitude": (
        HEAD + "f = torch.fft.rfft(a, dim=-1).abs()\n",
        "f =",
        SPECTRUM,
        ["f = torch.fft.rfft(a.float(), dim=-1).abs().to(a.dtype)"],
    ),
    "a spectrum": (HEAD + "f = torch.fft.rfft(a * 2)\n", "f =", SPECTRUM, ["f = torch.fft.rfft((a * 2).float())"]),
    "a sum written by index": (HEAD + "y[i] = x + 1\n", "y[i]", WRITTEN, ["y[i] = (x + 1).to(y.dtype)"]),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Other operations, and operands that are float32 by their own words, are left alone."""
    assert rewritten(tmp_path, "cast_operand", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The operand of the call that the message means is cast; a second time nothing is left to do."""
    after = rewritten(tmp_path, "cast_operand", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "cast_operand", after, None if at not in after else at or None, **given) == after
