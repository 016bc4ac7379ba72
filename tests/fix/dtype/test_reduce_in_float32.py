"""A sum that passes the range of float16 is taken in float32; another operation, and one with a dtype of its own, stays."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import ExceptionRecord, Fact, Incident
from explainer.model.trace import NOT_FINITE, TracedLine
from tests.fix.rewriting import best, line_of, write

PROGRAM = "import torch\nnet = torch.nn.Linear(3, 3)\ndef loss(x, w, labels):\n    z = net(x)\n    valid = labels != -1\n    return {}  # here\n"
TAKEN = {
    "w * z.square().sum() / valid.sum()": "w * z.float().square().sum() / valid.sum()",
    "torch.sum(z ** 2)": "torch.sum((z ** 2).float())",
    "torch.sum(z.pow(2), dim=1)": "torch.sum(z.float().pow(2), dim=1)",
    "(z * w).sum(-1)": "(z * w).float().sum(-1)",
}
KEPT = ("z.sum(dtype=torch.float32)", "z.square().mean()", "sum(z)")


def after(written: str, operation: str, folder: pathlib.Path, fact: str = "traced_float16_infinity") -> str:
    """The expression after the best edit for an infinity that the operation made."""
    source = PROGRAM.format(written)
    program = write(folder, {"train.py": source})
    line = TracedLine(
        kind=NOT_FINITE, operation=operation, file=str(folder / "train.py"), line=line_of(source, "# here")
    )
    failed = ExceptionRecord(type="FloatingPointError", message="loss is inf")
    incident = Incident(exceptions=(failed,), traced=(line,), facts=(Fact(name=fact, value=operation),))
    found = best("reduce_in_float32", program, incident=incident)
    text = (splice(source, found.edits) or "") if found is not None else source
    return text.partition("return ")[2].partition("  # here")[0]


@pytest.mark.parametrize(("written", "wanted"), TAKEN.items())
def test_it_adds_up_in_float32(written: str, wanted: str, tmp_path: pathlib.Path) -> None:
    assert after(written, "sum", tmp_path) == wanted


@pytest.mark.parametrize("written", KEPT)
def test_others_stay(written: str, tmp_path: pathlib.Path) -> None:
    assert after(written, "sum", tmp_path) == written


def test_only_of_float16(tmp_path: pathlib.Path) -> None:
    """An infinity of float32 is no matter of the range that a sum is taken in."""
    assert after("z.square().sum()", "sum", tmp_path, "traced_infinity_of_finite") == "z.square().sum()"
    assert after("z.square().matmul(w)", "matmul", tmp_path) == "z.square().matmul(w)"


POWERS = {
    "z.pow(2).mean(-1)": ("pow", "z.float().pow(2).mean(-1)"),
    "(z ** 2).mean()": ("pow", "(z.float() ** 2).mean()"),
    "torch.square(z).mean()": ("square", "torch.square(z.float()).mean()"),
    "(z * z).mean() * w": ("mul", "(z.float() * z).mean() * w"),
}


@pytest.mark.parametrize(("written", "given"), POWERS.items())
def test_it_raises_to_a_power_in_float32(written: str, given: tuple[str, str], tmp_path: pathlib.Path) -> None:
    assert after(written, given[0], tmp_path) == given[1]


def test_a_product_of_two_stays(tmp_path: pathlib.Path) -> None:
    """Which of its factors is out of range is not told."""
    assert after("z * w", "mul", tmp_path) == "z * w"
