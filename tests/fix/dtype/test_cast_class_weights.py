"""Class weights get the dtype of the scores that they stand beside."""

from __future__ import annotations

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import ExceptionRecord, Frame, Incident
from tests.fix.rewriting import best, changed_lines, rewritten, write

HEAD = "import numpy as np\nimport torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"
DOUBLE = {"fields": {"expected_dtype": "float32", "found_dtype": "float64"}}
HALF = {"fields": {"expected_dtype": "bfloat16", "found_dtype": "float32"}}
BALANCED = """def balanced(labels, classes):
    counts = np.bincount(labels, minlength=classes)
    return SHARE

criterion = nn.CrossEntropyLoss(weight=balanced(y, 3))
loss = criterion(net(x), y)
"""
SHARE = "torch.from_numpy(len(labels) / (classes * np.maximum(counts, 1)))"
IN_PLACE = "loss = F.cross_entropy(net(x), y, weight=w)\n"
RIGHT = {
    "no weights": (HEAD + "loss = F.cross_entropy(net(x), y)\n", "loss =", DOUBLE),
    "another line": (HEAD + "w = read()\n" + IN_PLACE, "w = read", DOUBLE),
    "scores in float64": (HEAD + IN_PLACE, "loss =", {"fields": {"expected_dtype": "float64", "found_dtype": "float32"}}),
    "cast already": (HEAD + "w = torch.from_numpy(1 / np.bincount(y)).float()\n" + IN_PLACE, "loss =", DOUBLE),
    "a loss of values": (HEAD + "loss = F.binary_cross_entropy(p, y, weight=w)\n", "loss =", DOUBLE),
}  # fmt: skip
WRONG = {
    "of counts": (HEAD + BALANCED.replace("SHARE", SHARE), "loss =", DOUBLE, [f"return {SHARE}.float()"]),
    "counts that get a floor in place": (
        HEAD + BALANCED.replace("SHARE", "torch.as_tensor(100 / counts)").replace("    return", "    counts = np.maximum(counts, 1)\n    return"),
        "loss =", DOUBLE, ["return torch.as_tensor(100 / counts).float()"],
    ),
    "from where the source does not show": (HEAD + IN_PLACE, "loss =", DOUBLE, ["loss = F.cross_entropy(net(x), y, weight=w.float())"]),
    "scores in half precision": (HEAD + IN_PLACE, "loss =", HALF, ["loss = F.cross_entropy(net(x).float(), y, weight=w)"]),
}  # fmt: skip


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Losses without such weights, and scores that are the odd ones out."""
    assert rewritten(tmp_path, "cast_class_weights", source, at, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The cast stands where the weights became float64, else where the loss takes them."""
    assert changed_lines(source, rewritten(tmp_path, "cast_class_weights", source, at, **given)) == wanted


@pytest.mark.parametrize(("function", "is_cast"), [("cross_entropy", True), ("linear", False)])
def test_losses_that_a_table_holds(tmp_path, function: str, is_cast: bool) -> None:
    """The one constructor with weights, where a loss of classes raised; not for a dtype that a layer refuses."""
    source = (
        HEAD + "terms = nn.ModuleDict({k: nn.CrossEntropyLoss(weight=w[k]) for k in w})\nloss = terms[k](net(x), y)\n"
    )
    own = Frame(file="train.py", line=source.count("\n"), code="loss = terms[k](net(x), y)")
    below = Frame(file="torch/nn/functional.py", line=3, function=function, library="torch")
    incident = Incident(exceptions=(ExceptionRecord(type="RuntimeError", message="it failed", frames=(own, below)),))
    found = best("cast_class_weights", write(tmp_path, {"train.py": source}), incident=incident, **DOUBLE)
    assert (found is not None) is is_cast
    if found is not None:
        assert "weight=w[k].float()" in (splice(source, found.edits) or "")
