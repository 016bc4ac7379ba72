"""Warnings that tell of a failure also where the program ends well."""

from __future__ import annotations

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.match.silent import silent_warnings
from explainer.model.incident import Incident, WarningRecord

BROADCAST = (
    "Using a target size (torch.Size([8])) that is different to the input size (torch.Size([8, 1])). "
    "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size."
)
ORDER = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call them"
)
TWICE = "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error"
CASES = {
    "broadcast": (BROADCAST, (), {"target-size-differs"}),
    "broadcast beside a scaler": (BROADCAST, ("grad scaler",), {"target-size-differs"}),
    "one value on each side": (BROADCAST.replace("[8]", "[]").replace("[8, 1]", "[1]"), (), set()),
    "one target for all": (BROADCAST.replace("[8]", "[]"), (), {"target-size-differs"}),
    "order": (ORDER, (), {"optimizer/scheduler-order"}),
    "twice": (TWICE, (), {"optimizer/option-conflict"}),
    "order beside a scaler, which leaves steps out": (ORDER, ("grad scaler",), set()),
    "a deprecation": ("`torch_dtype` is deprecated! Use `dtype` instead!", (), set()),
    "a checkpoint's": ("None of the inputs have requires_grad=True. Gradients will be None", (), set()),
}


@pytest.mark.parametrize(("text", "uses", "wanted"), CASES.values(), ids=CASES)
def test_which_warnings_tell(text: str, uses: tuple[str, ...], wanted: set[str]) -> None:
    """Those of marked forms, unless the program uses what makes them harmless."""
    incident = Incident(warnings=(WarningRecord(message=text, category="UserWarning"),))
    assert silent_warnings(incident, load_catalog(None), uses) == wanted


def test_the_same_words_elsewhere_tell_nothing() -> None:
    """No warning, no such failure."""
    assert not silent_warnings(Incident(), load_catalog(None))
