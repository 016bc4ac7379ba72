"""A flag is taken off a computed tensor."""

from __future__ import annotations

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
net = nn.Linear(4, 3)
x, y = torch.randn(2, 4), torch.tensor([0, 1])
"""
RIGHT = {
    "a leaf": (
        HEAD
        + """x.requires_grad = True
net(x).sum().backward()
""",
        "x.requires_grad",
    ),
    "a frozen layer": (
        HEAD
        + """net.requires_grad_(False)
""",
        "net.requires_grad_",
    ),
    "a frozen weight": (
        HEAD
        + """net.weight.requires_grad = False
""",
        "net.weight",
    ),
    "a line that is not at fault": (
        HEAD
        + """h = net(x)
h.requires_grad = True
print(h)
""",
        "print(h)",
    ),
}
WRONG = {
    "an activation": (
        HEAD
        + """h = net(x)
h.requires_grad = True
h.sum().backward()
""",
        "h.requires_grad",
        [],
    ),
    "an activation whose gradient is read": (
        HEAD
        + """h = net(x)
h.requires_grad = True
h.sum().backward()
print(h.grad)
""",
        "h.requires_grad",
        ["h.retain_grad()"],
    ),
    "an activation that gets no gradient": (
        HEAD
        + """h = net(x)
h.requires_grad = False
loss = (h + net(x)).sum()
""",
        "h.requires_grad",
        ["h = h.detach()"],
    ),
    "a helper that puts the flag back": (
        HEAD
        + """def slope(f, z):
    z.requires_grad_(True)
    (g,) = torch.autograd.grad(f(z).sum(), z, create_graph=True)
    z.requires_grad_(False)
    return g
h = net(x)
loss = (slope(torch.tanh, h) + h).sum()
""",
        "z.requires_grad_(False)",
        ["if z.is_leaf:", "z.requires_grad_(False)"],
    ),
    "a pruned weight": (
        HEAD
        + """from torch.nn.utils import prune
prune.l1_unstructured(net, "weight", amount=0.5)
net.weight.requires_grad = False
""",
        "net.weight.r",
        ["net.weight_orig.requires_grad = False"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Flags of leaves are left alone."""
    assert rewritten(tmp_path, "flag_where_it_belongs", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The flag goes, or moves to the leaf; a second time nothing is left to do."""
    after = rewritten(tmp_path, "flag_where_it_belongs", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "flag_where_it_belongs", after, again) == after


CALLER = """import torch
from torch import nn
from helper import freeze
net = nn.Linear(4, 3)
taps = {made}
{call}
print(taps)
"""
EACH = "def freeze(tensors):\n    for t in tensors:\n        t.requires_grad_(False)\n"
ONE = "def freeze(t):\n    t.requires_grad = False\n"
HELPED = {
    "the values of a dictionary": (
        EACH, '{"a": net(torch.randn(2, 4))}', "freeze(taps.values())",
        ["taps = {key: value.detach() for key, value in taps.items()}"],
    ),
    "values, by the helper": (
        EACH.replace("in tensors", "in tensors.values()"), '{"a": net(torch.randn(2, 4))}', "freeze(taps)",
        ["taps = {key: value.detach() for key, value in taps.items()}"],
    ),
    "a list": (EACH, "[net(torch.randn(2, 4))]", "freeze(taps)", ["taps = [one.detach() for one in taps]"]),
    "one tensor": (ONE, "net(torch.randn(2, 4))", "freeze(taps)", ["taps = taps.detach()"]),
    "what has no name": (ONE, "net(torch.randn(2, 4))", "freeze(net(taps))", None),
    "what a call gives": (EACH, "[net(torch.randn(2, 4))]", "freeze(reversed(taps))", None),
}  # fmt: skip


@pytest.mark.parametrize(("helper", "made", "call", "wanted"), HELPED.values(), ids=HELPED)
def test_what_a_helper_flags_is_detached_by_its_caller(
    tmp_path, helper: str, made: str, call: str, wanted: list[str] | None
) -> None:
    """The helper's own name would be bound to another tensor in vain."""
    text = CALLER.format(made=made, call=call)
    program = write(tmp_path, {"helper.py": helper, "train.py": text})
    frames = {"train.py": line_of(text, call), "helper.py": line_of(helper, "t.requires_grad")}
    found = best("flag_where_it_belongs", program, incident=failed(frames))
    assert found is not None
    assert found.culprit.file.endswith("train.py")
    after = splice(text, found.edits) or "" if found.edits else text
    assert (changed_lines(text, after) or None) == wanted


def test_the_tensors_of_a_loop_are_detached_where_they_are_held(tmp_path) -> None:
    source = (
        HEAD
        + "outs = [net(x), net(x)]\nfor out in outs:\n    out.requires_grad_(False)\nloss = sum(o.sum() for o in outs)\n"
    )
    after = rewritten(tmp_path, "flag_where_it_belongs", source, "out.requires_grad_")
    assert changed_lines(source, after) == ["outs = [one.detach() for one in outs]"]
