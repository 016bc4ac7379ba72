"""Statements that share a line: what is put beside one or taken out leaves the others as they were."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.fix.codemod import insert_after, insert_before, remove_statement
from explainer.fix.splice import splice
from tests.fix.rewriting import rewritten, write

ORDERS = {
    "alone on their lines": "for b in data:\n    a()\n    b()  # why\n    c()\n",
    "on one line": "for b in data:\n    a(); b(); c()\n",
    "in two pairs": "for b in data:\n    a(); b()\n    c()  # why\n",
    "behind a colon": "for b in data: a(); b(); c()\n",
    "without a line end": "for b in data:\n    a(); b(); c()",
    "over two lines": "for b in data:\n    a(\n    ); b(); c(\n    )\n",
}


@pytest.mark.parametrize("name", "abc")
@pytest.mark.parametrize("source", ORDERS.values(), ids=ORDERS)
def test_a_statement_is_put_beside_another_or_taken_out(tmp_path: pathlib.Path, source: str, name: str) -> None:
    """The order of all calls says where the new one stands; what is taken out is gone alone."""
    program = write(tmp_path, {"train.py": source})
    (file,) = program.files.values()
    assert file.tree is not None
    loop = file.tree.body[0]
    assert isinstance(loop, ast.For)
    statement = loop.body["abc".index(name)]
    for make, order in (
        (lambda: insert_before(file, statement, "new()"), f"new {name}"),
        (lambda: insert_after(file, statement, "new()"), f"{name} new"),
        (lambda: remove_statement(file, statement), ""),
    ):
        after = splice(file.text, [make()])
        assert after is not None
        (body,) = (one.body for one in ast.parse(after).body if isinstance(one, ast.For))
        assert [ast.unparse(one) for one in body] == [f"{one}()" for one in "a b c".replace(name, order).split()]
        assert not order or after.count("# why") == source.count("# why")


def test_a_step_on_the_line_of_its_backward_changes_places(tmp_path: pathlib.Path) -> None:
    """The line is parted where the two stood in the wrong order."""
    source = """import torch

model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.ones(2)).sum()
    loss.backward(); optimizer.zero_grad(); optimizer.step()
"""
    after = rewritten(tmp_path, "clear_before_backward", source, at="loss.backward()")
    lines = [one.strip() for one in after.replace(";", "\n").splitlines()]
    assert lines.index("optimizer.zero_grad()") < lines.index("loss.backward()") < lines.index("optimizer.step()")
