"""Writes that become assignments: entries of dictionaries, values of expressions, functions; and what is no tensor."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, changed_lines, diff_lines, failed, line_of, rewritten, write

TOP = "import torch\nimport collections\nclass N(torch.nn.Module):\n"
# The body of a method.
RIGHT = {
    "a chain that reads what it has changed": "h = torch.tanh(x)\nreturn h.mul_(2).add_(h)",
    "a count in a dictionary": "seen = {}\nseen['n'] += 1\nreturn x",
    "a weight of another module": "self.lin.weight.mul_(2)\nreturn x",
    "the value is used and the name read": "h = torch.tanh(x)\ng = h.mul_(2) + 1\nreturn h + g",
    "in a loop from outside of it": "h = torch.tanh(x)\ng = 0\nfor _ in range(3):\n    g = g + h.mul_(2)\nreturn g",
    "an element that another container gets": (
        "out, seen = {'h': torch.tanh(x)}, {}\nfor key, h in out.items():\n    seen[key] = h.mul_(2)\nreturn out['h']"
    ),
    "read twice in one expression": "h = torch.tanh(x)\nh = h.mul_(0.9).add(h)\nreturn h",
    "zeros as a value": "h = torch.tanh(x)\nreturn h.zero_() + x",
    "a chain that writes what a loop hands out": (
        "for p, q in zip(self.old.parameters(), self.new.parameters()):\n    p.mul_(0.9).add_(q, alpha=0.1)\nreturn x"
    ),
}
WRONG = {
    "a chain on an attribute": (
        "self.h = torch.tanh(x)\ny = self.h * x\nself.h.mul_(0.9).add_(x)\nreturn y + self.h",
        ["-self.h.mul_(0.9).add_(x)", "+self.h = self.h.mul(0.9).add(x)"],
    ),
    "a chain that is returned": (
        "h = torch.tanh(x)\nw = torch.sigmoid(h)\nreturn h.mul_(1 - w).add_(w)",
        ["-return h.mul_(1 - w).add_(w)", "+return h.mul(1 - w).add(w)"],
    ),
    "an entry through a method": (
        "out = {'h': torch.tanh(x)}\nout['h'].clamp_(max=1)\nreturn out['h']",
        ["-out['h'].clamp_(max=1)", "+out['h'] = out['h'].clamp(max=1)"],
    ),
    "an entry that is added to": (
        "out = {'h': torch.tanh(x)}\nout['h'] += x * 2\nreturn out['h']",
        ["-out['h'] += x * 2", "+out['h'] = out['h'] + x * 2"],
    ),
    "an element of a list": (
        "out = [torch.tanh(x)]\nout[0] *= x + 1\nreturn out[0]",
        ["-out[0] *= x + 1", "+out[0] = out[0] * (x + 1)"],
    ),
    "an element that is put back": (
        "out = {'h': torch.tanh(x)}\nfor key, h in out.items():\n    out[key] = h.mul_(2)\nreturn out['h']",
        ["-out[key] = h.mul_(2)", "+out[key] = h.mul(2)"],
    ),
    "the last use": (
        "h = torch.tanh(x)\nreturn x + h.mul_(2)",
        ["-return x + h.mul_(2)", "+return x + h.mul(2)"],
    ),
    "a chain that goes on out of place": (
        "h = torch.tanh(x)\nfor _ in range(2):\n    w = torch.sigmoid(h)\n    h = h.mul_(0.9).add(w)\nreturn h",
        ["-h = h.mul_(0.9).add(w)", "+h = h.mul(0.9).add(w)"],
    ),
    "noise": (
        "h = torch.tanh(x)\nh.uniform_(0, 1)\nreturn h",
        ["-h.uniform_(0, 1)", "+h = h.clone().uniform_(0, 1)"],
    ),
}


AT_A_LEAF = {
    "a view that goes on": (
        "q = self.queries.expand(4, -1)\nq += self.shift(x)\nreturn self.layer(q)",
        ["-q += self.shift(x)", "+q = q + self.shift(x)"],
    ),
    "an update that nobody reads": ("w = self.fc.weight.view(-1)\nw += x", []),
    "a running value": (
        "w = self.table[0]\nfor _ in range(3):\n    x = x + w\n    w += self.shift(w)\nreturn x",
        ["-w += self.shift(w)", "+w = w + self.shift(w)"],
    ),
    "an update in a loop": ("w = self.table[0]\nfor _ in range(3):\n    w += self.shift(w)\nreturn x", []),
}


@pytest.mark.parametrize(("body", "changes"), AT_A_LEAF.values(), ids=AT_A_LEAF)
def test_where_a_leaf_refuses(body: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """What the forward reads on is written out of place; an update would be lost by that."""
    line = next(one for one in body.split("\n") if "+=" in one).strip()
    after = rewritten(tmp_path, "write_out_of_place", program(body), line, options={"at": "raise"})
    assert [one[:1] + one[1:].lstrip() for one in diff_lines(program(body), after)] == changes


def program(body: str) -> str:
    return TOP + "    def forward(self, x):\n" + "".join(f"        {line}\n" for line in body.split("\n"))


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(body: str, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed for what is no tensor, is not its own, or is read again."""
    assert rewritten(tmp_path, "write_out_of_place", program(body)) == program(body)


@pytest.mark.parametrize(("body", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(body: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The old tensor stays as autograd saved it; a second time nothing is left to do."""
    after = rewritten(tmp_path, "write_out_of_place", program(body))
    assert [line[:1] + line[1:].lstrip() for line in diff_lines(program(body), after)] == changes
    if "clone()" not in after:
        assert rewritten(tmp_path, "write_out_of_place", after) == after


@pytest.mark.parametrize("method", ["exp_", "mul_"])
def test_a_parameter_whose_written_value_is_returned(method: str, tmp_path: pathlib.Path) -> None:
    """The write was refused, so nothing was ever written: the value is what is wanted of it."""
    given = "" if method == "exp_" else "x"
    source = program(f"return self.bias.{method}({given})")
    after = rewritten(tmp_path, "write_out_of_place", source, method, options={"at": "raise"})
    assert diff_lines(source, after)[1:] == [f"+        return self.bias.{method[:-1]}({given})"]
    source = program(f"self.kept = self.bias.{method}({given}) * self.kept + x\nreturn self.kept")
    after = rewritten(tmp_path, "write_out_of_place", source, method, options={"at": "raise"})
    assert diff_lines(source, after)[1:] == [f"+        self.kept = self.bias.{method[:-1]}({given}) * self.kept + x"]
    source = program(f"scale = self.bias.{method}({given})\nreturn x / scale")
    after = rewritten(tmp_path, "write_out_of_place", source, method, options={"at": "raise"})
    assert diff_lines(source, after)[1:] == [f"+        scale = self.bias.{method[:-1]}({given})"]


def test_an_update_that_gets_another_name_stays(tmp_path: pathlib.Path) -> None:
    """Out of place it would be lost, and the error with it."""
    source = program("new = self.bias.sub_(0.1 * self.bias.grad)\nreturn x + new")
    assert rewritten(tmp_path, "write_out_of_place", source, "sub_", options={"at": "raise"}) == source


FIELD = """import torch
class State(BASE):
    def __init__(self):
        self.h = torch.zeros(2)
def step(x, state):
    y = state.h * x
    state.h.mul_(x).add_(1)
    return y + state.h
"""


def test_a_field_of_a_plain_object(tmp_path: pathlib.Path) -> None:
    """All that hold the object read its new value; a buffer of a module is read by those that hold the tensor."""
    source = FIELD.replace("BASE", "object")
    after = rewritten(tmp_path, "write_out_of_place", source)
    assert diff_lines(source, after) == ["-    state.h.mul_(x).add_(1)", "+    state.h = state.h.mul(x).add(1)"]
    of_module = FIELD.replace("BASE", "torch.nn.Module")
    assert rewritten(tmp_path, "write_out_of_place", of_module) == of_module


UNIT = """import torch
from torch import nn

class Unit(nn.Linear):
    def forward(self, x):
        {before}
        return nn.functional.linear(x, self.weight, self.bias)
"""


def test_a_parameter_that_its_forward_changes(tmp_path: pathlib.Path) -> None:
    """Its attribute takes no other tensor: a local does, and is shown only, as the parameter may be what was to change."""
    source = UNIT.format(before="self.weight.div_(self.weight.norm())")
    program = write(tmp_path, {"train.py": source})
    incident = failed({"train.py": line_of(source, "div_")}, code="self.weight.div_(self.weight.norm())")
    found = best("write_out_of_place", program, incident=incident, options={"at": "raise"})
    assert found is not None
    assert found.applicability == "display"
    after = rewritten(tmp_path, "write_out_of_place", source, "div_", options={"at": "raise"})
    assert changed_lines(source, after) == [
        "weight = self.weight.div(self.weight.norm())",
        "return nn.functional.linear(x, weight, self.bias)",
    ]


def test_a_parameter_that_is_changed_in_some_cases(tmp_path: pathlib.Path) -> None:
    """A local would be missing in the others."""
    source = UNIT.format(before="if self.training:\n            self.weight.clamp_(-1, 1)")
    assert rewritten(tmp_path, "write_out_of_place", source, "clamp_", options={"at": "raise"}) == source


PATH = """import torch
def integrate(net, y, steps):
    path = [y]
    for _ in range(steps):
        y += 0.1 * net(y)
        path.append(y)
    return torch.stack(path)
"""


def test_a_parameter_that_a_returned_list_gets(tmp_path: pathlib.Path) -> None:
    """Each state is an entry of its own; not where the caller owns the list, and sees one tensor change."""
    after = rewritten(tmp_path, "write_out_of_place", PATH, "y +=")
    assert diff_lines(PATH, after) == ["-        y += 0.1 * net(y)", "+        y = y + 0.1 * net(y)"]
    owned = (
        PATH.replace("net, y, steps", "net, y, path, steps")
        .replace("    path = [y]\n", "")
        .replace("return torch.stack(path)", "print(len(path))")
    )
    assert rewritten(tmp_path, "write_out_of_place", owned, "y +=") == owned
