"""Backward is called on the loss in what a model gave back."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten


def said(kind: str) -> str:
    return f"'{kind}' object has no attribute 'backward'"


@pytest.mark.parametrize(
    ("kind", "source", "wanted"),
    [
        ("CausalLMOutputWithPast", "out = model(**batch)\nout.backward()", "out.loss.backward()"),
        ("CausalLMOutputWithPast", "model(**batch).backward()", "model(**batch).loss.backward()"),
        ("list", "losses = [f(x) for x in batch]\nlosses.backward()", "sum(losses).backward()"),
        (
            "dict",
            'def f(x):\n return {"loss": x, "logits": 2 * x}\nout = f(x)\nout.backward()',
            'out["loss"].backward()',
        ),
        ("tuple", "def f(x):\n return logits, loss\nout = f(x)\nout.backward()", "out[1].backward()"),
        ("str", "loss, logits = model(**batch)\nloss.backward()", "loss, logits = model(**batch)[:2]"),
        # Which of them is the loss is not written.
        ("dict", 'def f(x):\n return {"loss_a": x, "loss_b": x}\nout = f(x)\nout.backward()', None),
        ("tuple", "def f(x):\n return a, b\nout = f(x)\nout.backward()", None),
        ("str", "logits, loss = model(**batch)\nloss.backward()", None),
    ],
)
def test_backward(tmp_path: pathlib.Path, kind: str, source: str, wanted: str | None) -> None:
    after = rewritten(tmp_path, "loss_of_container", f"{source}\n", ".backward()", message=said(kind))
    assert changed_lines(source, after) == ([wanted] if wanted else [])


@pytest.mark.parametrize(
    ("types", "source", "wanted"),
    [
        ("'MaskedLMOutput' and 'int'", "loss = model(**b) / 4", "loss = model(**b).loss / 4"),
        ("'float' and 'MaskedLMOutput'", "loss = 0.5 * model(**b)", "loss = 0.5 * model(**b).loss"),
        ("'Tensor' and 'NoneType'", "loss = a + b", None),
    ],
)
def test_arithmetic(tmp_path: pathlib.Path, types: str, source: str, wanted: str | None) -> None:
    message = f"unsupported operand type(s) for /: {types}"
    after = rewritten(tmp_path, "loss_of_container", f"{source}\n", "loss =", message=message)
    assert changed_lines(source, after) == ([wanted] if wanted else [])


def test_unpacking(tmp_path: pathlib.Path) -> None:
    source, message = "loss, logits = model(**batch)\nloss.backward()\n", "too many values to unpack (expected 2)"
    after = rewritten(tmp_path, "loss_of_container", source, "model(", message=message)
    assert changed_lines(source, after) == ["loss, logits = model(**batch)[:2]"]
