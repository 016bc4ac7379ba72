"""A target of a binary cross-entropy that holds 0 and 255 is scaled, not only cast."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.model.incident import Fact
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

torch = pytest.importorskip("torch")
from explainer.fix.splice import splice  # noqa: E402
from explainer.live.crash import look  # noqa: E402
from explainer.verification.live_report import facts_of  # noqa: E402

pytestmark = pytest.mark.torch


def told(target: torch.Tensor) -> str | None:
    logits = torch.zeros(target.shape, requires_grad=True)
    with pytest.raises((RuntimeError, ValueError)) as error:
        torch.nn.functional.binary_cross_entropy_with_logits(logits, target).backward()
        raise ValueError(str(target.dtype))  # some integers are taken
    return dict(facts_of(look(error.value))).get("live_target_beyond_one")


def test_what_a_mask_holds() -> None:
    """One number beside 0, several, or what a cast alone makes probabilities of."""
    assert told(torch.tensor([0, 255, 255], dtype=torch.uint8)) == "255 alone"
    assert told(torch.tensor([0, 3, 7], dtype=torch.uint8)) == "7 at most"
    assert told(torch.tensor([0, 1, 1], dtype=torch.uint8)) is None


SOURCE = """import torch.nn.functional as F

for image, mask in loader:
    loss = F.binary_cross_entropy_with_logits(net(image), mask)
    loss.backward()
"""


@pytest.mark.parametrize(
    ("beyond", "wanted"),
    [("255 alone", "mask.float() / 255"), ("7 at most", None), ("2 alone", None), (None, "mask.float()")],
    ids=["a mask", "several numbers", "classes by chance", "0 and 1"],
)
def test_a_mask_is_scaled(tmp_path: pathlib.Path, beyond: str | None, wanted: str | None) -> None:
    """Of several numbers only the author knows what they mean: the line is told, and nothing is proposed."""
    said = "result type Float can't be cast to the desired output type Byte"
    incident = failed({"train.py": line_of(SOURCE, "loss = F")}, said)
    facts = (Fact(name="live_target_beyond_one", value=beyond),) if beyond else ()
    found = best("cast_target", write(tmp_path, {"train.py": SOURCE}), incident=replace(incident, facts=facts))
    assert found is not None
    after = splice(SOURCE, found.edits) if found.edits else SOURCE
    line = f"loss = F.binary_cross_entropy_with_logits(net(image), {wanted})"
    assert changed_lines(SOURCE, after) == ([line] if wanted else [])
    assert found.culprit.line == line_of(SOURCE, "loss = F")
