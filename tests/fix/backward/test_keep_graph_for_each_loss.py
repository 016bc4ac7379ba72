"""The shared graph is kept where the gradient of each loss is wanted alone, and nowhere else."""

from __future__ import annotations

import pytest

from explainer.model.incident import ExceptionRecord, Fact, Frame, Incident
from tests.fix.rewriting import best, changed_lines, line_of, rewritten, write

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
trunk, heads = nn.Linear(4, 8), nn.ModuleList(nn.Linear(8, 1) for _ in range(3))
params = list(trunk.parameters())
opt = torch.optim.SGD([*params, *heads.parameters()], 0.1)
loader = [(torch.randn(5, 4), torch.randn(3, 5, 1)) for _ in range(2)]
"""
RIGHT = {
    "the graph is kept": (
        """for x, ys in loader:
    z = trunk(x)
    losses = [F.mse_loss(head(z), y) for head, y in zip(heads, ys)]
    grads = [torch.autograd.grad(loss, params, retain_graph=True) for loss in losses]
    opt.step()
""",
        "autograd.grad",
    ),
    "a training loop over what was computed before it": (
        """z = trunk(loader[0][0])
for x, ys in loader:
    loss = F.mse_loss(heads[0](z), ys[0])
    grads = torch.autograd.grad(loss, params)
    for p, g in zip(params, grads):
        p.grad = g
    opt.step()
""",
        "autograd.grad",
    ),
    "a state that the rounds hand on": (
        """cell = nn.RNNCell(4, 8)
h = cell(loader[0][0])
for epoch in range(2):
    found = []
    for x, ys in loader:
        h = cell(x, h)
        loss = heads[0](h).sum()
        found.append(torch.autograd.grad(loss, params))
    opt.step()
""",
        "autograd.grad",
    ),
    "manual steps between the losses": (
        """for x, ys in loader:
    z = trunk(x)
    losses = [F.mse_loss(head(z), y) for head, y in zip(heads, ys)]
    for loss in losses:
        grads = torch.autograd.grad(loss, params)
        with torch.no_grad():
            for p, g in zip(params, grads):
                p.sub_(0.1 * g)
""",
        "autograd.grad",
    ),
    "losses that a generator makes": (
        """def losses(x, ys):
    for head, y in zip(heads, ys):
        yield F.mse_loss(head(trunk(x)), y)


for x, ys in loader:
    grads = [torch.autograd.grad(loss, params) for loss in losses(x, ys)]
    opt.step()
""",
        "autograd.grad",
    ),
    "losses that are only added up": (
        """for x, ys in loader:
    z = trunk(x)
    losses = [F.mse_loss(head(z), y) for head, y in zip(heads, ys)]
    opt.zero_grad()
    for loss in losses:
        loss.backward()
    opt.step()
""",
        "loss.backward",
    ),
    "one loss of a batch": (
        """for x, ys in loader:
    loss = F.mse_loss(heads[0](trunk(x)), ys[0])
    grads = torch.autograd.grad(loss, params)
""",
        "autograd.grad",
    ),
}
WRONG = {
    "a comprehension over a list": (
        """for x, ys in loader:
    z = trunk(x)
    losses = [F.mse_loss(head(z), y) for head, y in zip(heads, ys)]
    grads = [torch.autograd.grad(loss, params) for loss in losses]
    opt.step()
""",
        "autograd.grad",
        ["grads = [torch.autograd.grad(loss, params, retain_graph=True) for loss in losses]"],
    ),
    "a loop over the entries of a dict": (
        """for x, ys in loader:
    z = trunk(x)
    losses = {str(at): F.mse_loss(head(z), y) for at, (head, y) in enumerate(zip(heads, ys))}
    norms = {}
    for name, loss in losses.items():
        (g,) = torch.autograd.grad(outputs=loss, inputs=z, retain_graph=False)
        norms[name] = g.norm()
    opt.step()
""",
        "autograd.grad",
        ["(g,) = torch.autograd.grad(outputs=loss, inputs=z, retain_graph=True)"],
    ),
    "by index": (
        """for x, ys in loader:
    z = trunk(x)
    losses = [F.mse_loss(head(z), y) for head, y in zip(heads, ys)]
    rows = []
    for i in range(len(losses)):
        rows.append(torch.autograd.grad(losses[i], params))
    opt.step()
""",
        "autograd.grad",
        ["rows.append(torch.autograd.grad(losses[i], params, retain_graph=True))"],
    ),
    "losses made from one forward": (
        """for x, ys in loader:
    z = trunk(x)
    rows = []
    for head, y in zip(heads, ys):
        loss = F.mse_loss(head(z), y)
        rows.append(torch.autograd.grad(loss, params))
    opt.step()
""",
        "autograd.grad",
        ["rows.append(torch.autograd.grad(loss, params, retain_graph=True))"],
    ),
    "gradients read and cleared": (
        """for x, ys in loader:
    z = trunk(x)
    losses = [F.mse_loss(head(z), y) for head, y in zip(heads, ys)]
    rows = []
    for loss in losses:
        opt.zero_grad()
        loss.backward()
        rows.append([p.grad.clone() for p in params])
    opt.step()
""",
        "loss.backward",
        ["loss.backward(retain_graph=True)"],
    ),
    "two losses one after the other": (
        """for x, ys in loader:
    z = trunk(x)
    first, second = F.mse_loss(heads[0](z), ys[0]), F.mse_loss(heads[1](z), ys[1])
    a = torch.autograd.grad(first, params)
    b = torch.autograd.grad(second, params)
    opt.step()
""",
        "b = torch",
        ["a = torch.autograd.grad(first, params, retain_graph=True)"],
    ),
}
METHOD = (
    HEAD
    + """class Surgery:
    def one(self, value):
        return torch.autograd.grad(value, params)

    def all(self, values):
        return [self.one(value) for value in values]


for x, ys in loader:
    z = trunk(x)
    Surgery().all([F.mse_loss(head(z), y) for head, y in zip(heads, ys)])
    opt.step()
"""
)


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_other_programs_stay(tmp_path, source: str, at: str) -> None:
    """A graph of an earlier step, losses that can be added, and graphs that are kept already are left alone."""
    assert rewritten(tmp_path, "keep_graph_for_each_loss", HEAD + source, at) == HEAD + source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_the_graph_is_kept(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """Each call keeps the graph that the next loss needs; a second time nothing is left to do."""
    after = rewritten(tmp_path, "keep_graph_for_each_loss", HEAD + source, at)
    assert changed_lines(HEAD + source, after) == wanted
    if "b = torch" not in at:
        assert rewritten(tmp_path, "keep_graph_for_each_loss", after, at) == after


def proposed(tmp_path, source: str, *steps: str):
    """What is proposed for a failure that goes through a method, with the steps that were counted."""
    program = write(tmp_path, {"train.py": source})
    lines = [line_of(source, words) for words in (".all([", "self.one(value)", "autograd.grad")]
    record = ExceptionRecord(
        type="RuntimeError", message="", frames=tuple(Frame(file="train.py", line=one) for one in lines)
    )
    facts = tuple(Fact(name="live_steps", value=one) for one in steps)
    return best("keep_graph_for_each_loss", program, incident=Incident(exceptions=(record,), facts=facts))


def test_a_method_that_is_given_each_loss(tmp_path) -> None:
    """The call is followed to the loop that hands out the losses; in the first step nothing else can have freed the graph."""
    assert proposed(tmp_path, METHOD, "0").applicability is None
    assert proposed(tmp_path, METHOD, "4").applicability == "unsafe"
    assert proposed(tmp_path, METHOD).applicability == "unsafe"


def test_a_method_that_is_given_a_batch(tmp_path) -> None:
    """A method that makes the loss itself is not called loss by loss."""
    source = METHOD.replace("(value, params)", "(heads[0](trunk(value)).sum(), params)")
    assert proposed(tmp_path, source, "0") is None
