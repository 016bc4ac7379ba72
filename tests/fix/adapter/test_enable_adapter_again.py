"""Adapters that a function switches off for a reference are on again when it returns."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

REFERENCE = """import torch


def reference(model, batches):
    model.disable_adapter_layers()
    with torch.no_grad():
        out = [model(one) for one in batches]
{end}

loss = model(x).loss
loss.backward()
"""
WRONG = {"a return": "    return out", "no return": "    torch.save(out, 'reference.pt')"}
RIGHT = {
    "on again": "    model.enable_adapter_layers()\n    return out",
    "on again elsewhere": "    return out\n\n\nmodel.enable_adapter_layers()",
}


@pytest.mark.parametrize("end", WRONG.values(), ids=WRONG)
def test_they_are_on_again(end: str, tmp_path: pathlib.Path) -> None:
    """Before the function ends; a second time nothing is left to do."""
    source = REFERENCE.format(end=end)
    after = rewritten(tmp_path, "enable_adapter_again", source)
    assert changed_lines(source, after) == ["model.enable_adapter_layers()"]
    lines = after.splitlines()
    assert abs(lines.index("    model.enable_adapter_layers()") - lines.index(end)) == 1
    assert rewritten(tmp_path, "enable_adapter_again", after) == after


@pytest.mark.parametrize("end", RIGHT.values(), ids=RIGHT)
def test_the_rest_stays(end: str, tmp_path: pathlib.Path) -> None:
    """Somebody does already."""
    source = REFERENCE.format(end=end)
    assert rewritten(tmp_path, "enable_adapter_again", source) == source


@pytest.mark.torch
def test_what_peft_does() -> None:
    """`disable_adapter_layers()` freezes the adapters until it is undone (peft 0.21)."""
    pytest.importorskip("torch")
    peft, nn = pytest.importorskip("peft"), pytest.importorskip("torch.nn")
    model = peft.get_peft_model(nn.Sequential(nn.Linear(4, 4)), peft.LoraConfig(r=2, target_modules=["0"]))
    trained = lambda: sum(one.requires_grad for one in model.parameters())  # noqa: E731
    counts = [trained()]
    model.base_model.disable_adapter_layers()
    counts.append(trained())
    model.base_model.enable_adapter_layers()
    counts.append(trained())
    assert counts == [2, 0, 2]
