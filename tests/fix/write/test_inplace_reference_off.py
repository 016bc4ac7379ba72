"""A function that writes in place is handed on as the one that does not; what is called for its effect stays."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

TOP = "import operator\nfrom functools import reduce\nfrom operator import methodcaller\nimport torch\nimport torch.nn.functional as F\n"
WRONG = {
    "reduce(operator.iadd, xs)": "reduce(operator.add, xs)",
    "reduce(torch.Tensor.mul_, xs)": "reduce(torch.Tensor.mul, xs)",
    "{'relu': F.relu_, 'tanh': torch.tanh}[name](xs)": "{'relu': F.relu, 'tanh': torch.tanh}[name](xs)",
    "methodcaller('clamp_', min=0)(xs)": "methodcaller('clamp', min=0)(xs)",
    "operator.itruediv(xs, 2)": "operator.truediv(xs, 2)",
    "operator.iand(xs, ys)": "operator.and_(xs, ys)",
}
RIGHT = (
    "    operator.iadd(xs, 1)\n",
    "    with torch.no_grad():\n        return reduce(operator.iadd, xs)\n",
    "    return reduce(operator.add, xs)\n",
    "    return torch.Tensor.__iadd__\n",
    "    return torch.nn.init.zeros_\n",
)


@pytest.mark.parametrize(("written", "after"), WRONG.items())
def test_it_makes_a_new_tensor(written: str, after: str, tmp_path: pathlib.Path) -> None:
    """A second time nothing is left to do."""
    source = TOP + f"def f(xs, ys=None, name='relu'):\n    return {written}\n"
    found = rewritten(tmp_path, "inplace_reference_off", source, "return")
    assert diff_lines(source, found) == [f"-    return {written}", f"+    return {after}"]
    assert rewritten(tmp_path, "inplace_reference_off", found, "return") == found


def test_an_import_goes_with_it(tmp_path: pathlib.Path) -> None:
    source = "from functools import reduce\nfrom operator import imul, sub\nimport torch\ndef f(xs):\n    return reduce(imul, xs)\n"
    after = rewritten(tmp_path, "inplace_reference_off", source, "return")
    assert after == source.replace("imul", "mul")


@pytest.mark.parametrize("body", RIGHT)
def test_right_programs_stay(body: str, tmp_path: pathlib.Path) -> None:
    """What is called for its effect, what has no graph, and what does not write."""
    source = TOP + "def f(xs):\n" + body
    assert rewritten(tmp_path, "inplace_reference_off", source, "f(xs)") == source
