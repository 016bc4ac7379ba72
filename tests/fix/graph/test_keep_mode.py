"""What evaluates keeps grad mode off where the decorator is taken off what it calls; not what a loss is computed of."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.fix.graph.keep_mode import keep_mode
from explainer.fix.splice import splice
from tests.fix.rewriting import diff_lines, write

SOURCE = """import torch

net = torch.nn.Linear(4, 2)


def run(x):
    return net(x)


def expected(x):
    net.eval()
    out = run(x)
    net.train()
    return out


def penalised(x):
    sampled = run(x)
    return GAP


penalised(torch.randn(3, 4)).backward()
print(expected(torch.randn(3, 4)))
"""
LOSSES = {
    "an evaluation": ("sampled.square().mean()", ["+@torch.no_grad()"]),
    "a term of the loss": ("(sampled - expected(x)).square().mean()", []),
}


@pytest.mark.parametrize(("gap", "wanted"), LOSSES.values(), ids=LOSSES)
def test_only_what_evaluates_keeps_it(gap: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    source = SOURCE.replace("GAP", gap)
    program = write(tmp_path, {"train.py": source})
    (file,) = program.parsed()
    (run,) = [one for one in file.walk() if isinstance(one, ast.FunctionDef) and one.name == "run"]
    after = splice(source, tuple(keep_mode(run, file, "torch.no_grad()", program)))
    assert diff_lines(source, str(after)) == wanted
