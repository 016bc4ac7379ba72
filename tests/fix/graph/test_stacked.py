"""Nested lists of tensors and numbers as stacks: the same values, with their graph."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.fix.graph.stacked import is_nested, stacked
from explainer.source.file import read_source

LISTS = {
    "rows": "[[c, -s], [s, c]]",
    "numbers among tensors": "[[c, -s, 0.0], [s, c, 1.0]]",
    "other numbers": "[c, -2.5, s]",
    "tuples": "((c, 0), (0, s))",
    "a comprehension": "[[[a, -b, 0.0], [b, a, 0.0]] for a, b in zip(angles.cos(), angles.sin())]",
    "a row of numbers": "[[c, s, 0.0], [0.0, 0.0, 1.0]]",
}


def text_of(source: str, folder: pathlib.Path) -> str | None:
    (folder / "lists.py").write_text(f"theta = {source}\n")
    file = read_source(str(folder / "lists.py"))
    statement = file.tree.body[0] if file.tree is not None else None
    assert isinstance(statement, ast.Assign)
    assert is_nested(statement.value)
    return stacked(statement.value, file, "torch")


@pytest.mark.torch
@pytest.mark.parametrize("source", LISTS.values(), ids=LISTS)
def test_the_values_stay_and_gradients_flow(tmp_path: pathlib.Path, source: str) -> None:
    """What `torch.tensor` copies, the stack keeps."""
    torch = pytest.importorskip("torch")
    angles = torch.tensor([0.3, 1.2], requires_grad=True)
    names = {"torch": torch, "angles": angles, "c": angles[0].cos(), "s": angles[1].sin()}
    text = text_of(source, tmp_path)
    assert text is not None
    made = eval(text, names)  # noqa: S307 - what the edit writes, on our own list
    assert torch.equal(made, eval(f"torch.tensor({source})", names))  # noqa: S307
    made.sum().backward()
    assert angles.grad.count_nonzero() > 0


def test_nothing_to_make_a_number_like(tmp_path: pathlib.Path) -> None:
    """A list of numbers is data, and one that unpacks another is not read."""
    assert text_of("[[0.0, 1.0], [1.0, 0.0]]", tmp_path) is None
    assert text_of("[[*rows], [c, s]]", tmp_path) is None
    assert text_of("[angles.sum(), 1.0]", tmp_path) is None
