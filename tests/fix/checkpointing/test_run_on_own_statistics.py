"""A pass in eval mode computes on statistics that a later pass in training mode does not move."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.trace import HIDDEN_WRITE, READ, TracedLine
from tests.fix.rewriting import changed_lines, failed, line_of, write

SOURCE = """import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)).double()
x, other = torch.randn(8, 3).double(), 3 + 2 * torch.randn(8, 3).double()
net.eval()
clean = net(x)
net.train()
noisy = net(other)
loss = clean.square().mean() + 0 * noisy.mean()
loss.backward()
"""


def proposed(source: str, folder: pathlib.Path, *, reads: str = "clean =", operation: str = "batch_norm") -> str | None:
    """The program after the edit for a trace that saw the second pass move what the first one used."""
    path = str(folder / "train.py")
    traced = (
        TracedLine(kind=HIDDEN_WRITE, operation=operation, file=path, line=line_of(source, "noisy =")),
        TracedLine(kind=READ, operation=operation, file=path, line=line_of(source, reads)),
    )
    program = write(folder, {"train.py": source})
    context = Context(program=program, incident=replace(failed(), traced=traced))
    found = list(find_codemod("run_on_own_statistics")(context))
    return splice(source, found[0].edits) if found else None


@pytest.mark.torch
def test_the_gradient_is_that_of_the_values(tmp_path: pathlib.Path) -> None:
    """As a backward before the second pass would give it."""
    torch = pytest.importorskip("torch")
    after = proposed(SOURCE, tmp_path)
    wanted = SOURCE.replace(
        "net.train()\n",
        "first = torch.autograd.grad(clean.square().mean(), net[0].weight, retain_graph=True)[0]\nnet.train()\n",
    )
    spaces: list[dict] = [{}, {}, {}]
    for space, text in zip(spaces, (SOURCE, wanted, after), strict=True):
        exec(text, space)  # noqa: S102 - the program of a test
    right = spaces[1]["first"]
    assert torch.allclose(spaces[2]["net"][0].weight.grad, right)
    assert not torch.allclose(spaces[0]["net"][0].weight.grad, right, rtol=1e-3)
    assert torch.equal(spaces[2]["clean"], spaces[0]["clean"])


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("net(x, mask=m)", '(x,), {"mask": m})'),
        ("self.net(x, y)", "(x, y))"),
    ],
)
def test_arguments_come_along(call: str, wanted: str, tmp_path: pathlib.Path) -> None:
    (line,) = changed_lines(SOURCE, proposed(SOURCE.replace("net(x)", call), tmp_path) or "")
    assert line.endswith(wanted)
    assert line.startswith(f"clean = torch.func.functional_call({call.partition('(')[0]}, {{name: ")


@pytest.mark.parametrize("call", ["torch.relu(x)", "score(x)", "net(x) + net(y)", "len(x)", "x.sum()", "net(*x)"])
def test_what_is_no_single_call_of_a_network_stays(call: str, tmp_path: pathlib.Path) -> None:
    source = "def score(x):\n    return x\n" + SOURCE.replace("net(x)", call)
    assert proposed(source, tmp_path) is None


def test_another_write_is_another_matter(tmp_path: pathlib.Path) -> None:
    assert proposed(SOURCE, tmp_path, operation="copy_") is None
