"""Parameters reach the optimizer: in a list, by names that exist."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, 2)


model = Net()
"""
RIGHT = {
    "a function that gives a list": (
        HEAD
        + """def trainable(model):
    return [p for p in model.parameters() if p.requires_grad]
params = trainable(model)
print(sum(p.numel() for p in params))
optimizer = torch.optim.SGD(params, lr=0.1)
""",
        "optimizer =",
    ),
    "a generator that is read once": (
        HEAD
        + """params = model.parameters()
optimizer = torch.optim.SGD(params, lr=0.1)
""",
        "optimizer =",
    ),
    "a list that is read twice": (
        HEAD
        + """params = list(model.parameters())
print(len(params))
optimizer = torch.optim.SGD(params, lr=0.1)
""",
        "optimizer =",
    ),
    "a name that exists": (
        HEAD
        + """params = [p for n, p in model.named_parameters() if "head" in n]
optimizer = torch.optim.SGD(params, lr=0.1)
""",
        "optimizer =",
    ),
    "what is left out by name": (
        HEAD
        + """params = [p for n, p in model.named_parameters() if not n.startswith("stem")]
optimizer = torch.optim.SGD(params, lr=0.1)
""",
        "optimizer =",
    ),
}
WRONG = {
    "a function that gives a generator": (
        HEAD
        + """def trainable(*modules):
    return (p for one in modules for p in one.parameters() if p.requires_grad)
params = trainable(model)
print(sum(p.numel() for p in params))
optimizer = torch.optim.SGD(params, lr=0.1)
""",
        "optimizer =",
        ["params = list(trainable(model))"],
    ),
    "a function that yields": (
        HEAD
        + """def trainable(model):
    for p in model.parameters():
        yield p
params = trainable(model)
print(sum(p.numel() for p in params))
optimizer = torch.optim.SGD(params, lr=0.1)
""",
        "optimizer =",
        ["params = list(trainable(model))"],
    ),
    "a chain": (
        HEAD
        + """import itertools
params = itertools.chain(model.body.parameters(), model.head.parameters())
print(sum(p.numel() for p in params))
optimizer = torch.optim.SGD(params, lr=0.1)
""",
        "optimizer =",
        ["params = list(itertools.chain(model.body.parameters(), model.head.parameters()))"],
    ),
    "counted first": (
        HEAD
        + """params = model.parameters()
print(sum(p.numel() for p in params))
optimizer = torch.optim.SGD(params, lr=0.1)
""",
        "optimizer =",
        ["params = list(model.parameters())"],
    ),
    "a filter": (
        HEAD
        + """params = filter(lambda p: p.requires_grad, model.parameters())
print(len(list(params)))
optimizer = torch.optim.SGD(params, lr=0.1)
""",
        "optimizer =",
        ["params = [p for p in model.parameters() if p.requires_grad]"],
    ),
    "a generator expression": (
        HEAD
        + """params = (p for p in model.parameters() if p.requires_grad)
print(len(list(params)))
optimizer = torch.optim.SGD(params, lr=0.1)
""",
        "optimizer =",
        ["params = [p for p in model.parameters() if p.requires_grad]"],
    ),
    "a name that no layer has": (
        HEAD
        + """params = [p for n, p in model.named_parameters() if "classifier" in n]
optimizer = torch.optim.SGD(params, lr=0.1)
""",
        "optimizer =",
        ['params = [p for n, p in model.named_parameters() if "head" in n]'],
    ),
    "a name that is misspelt": (
        HEAD
        + """params = [p for n, p in model.named_parameters() if n.startswith("bdoy.")]
optimizer = torch.optim.SGD(params, lr=0.1)
""",
        "optimizer =",
        ['params = [p for n, p in model.named_parameters() if n.startswith("body.")]'],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Lists, generators that are read once and names that exist are left alone."""
    assert rewritten(tmp_path, "keep_parameter_list", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The optimizer gets its parameters; a second time nothing is left to do."""
    after = rewritten(tmp_path, "keep_parameter_list", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "keep_parameter_list", after, again) == after


SUMMED = (
    HEAD
    + """def configure(net, own):
    named = own(net)
    print(sum(p.numel() for _, p in named))
    return torch.optim.SGD([p for _, p in named], lr=0.1)
configure(model, kinds["all"])
"""
)


@pytest.mark.parametrize("seen", [{"live_exhausted": "named"}, {}, {"live_exhausted": "other"}], ids=str)
def test_an_iterator_that_was_seen_at_its_end(tmp_path, seen: dict) -> None:
    """Where the program does not say what a call gives, the live variables do."""
    after = rewritten(tmp_path, "keep_parameter_list", SUMMED, "return torch.optim", facts=seen)
    wanted = ["named = list(own(net))"] if seen.get("live_exhausted") == "named" else []
    assert changed_lines(SUMMED, after) == wanted
