"""Which in-place write the message of a failure means: definitions in branches, activations in containers, versions."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, diff_lines, line_of, rewritten, write

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\nfrom collections import OrderedDict\n"
RELU = {"node": "Relu", "op": "Relu", "version": 1, "expected": 0}
RELU_IN_PLACE = {"node": "Relu", "op": "Relu", "version": 2, "expected": 1}
INNOCENT = {
    "behind a normalisation": "net = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.ReLU(inplace=True))",
    "behind a wrapped layer": "net = nn.Sequential(nn.utils.spectral_norm(nn.Linear(3, 4)), nn.ReLU(inplace=True))",
    "behind dropout over a layer": "net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.1), nn.ReLU(inplace=True))",
    "named layers": "net = nn.Sequential(OrderedDict([('fc', nn.Linear(3, 4)), ('act', nn.ReLU(inplace=True))]))",
    "a list that is unpacked": "layers = []\nlayers += [nn.Conv2d(3, 4, 1), nn.ReLU(inplace=True)]\nnet = nn.Sequential(*layers)",
    "a subclass": (
        "class Block(nn.Sequential):\n    def __init__(self):\n"
        "        super().__init__(nn.Linear(3, 4), nn.ReLU(inplace=True))\nnet = Block()"
    ),
    "a list of blocks": (
        "blocks = nn.ModuleList([nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True)) for _ in range(2)])\n"
        "for block in blocks:\n    x = block(x)"
    ),
    "weights that are set up": (
        "net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True))\n"
        "for m in net.modules():\n    if isinstance(m, nn.Linear):\n        nn.init.zeros_(m.bias)"
    ),
}
GUILTY = {
    "first in its container": "net = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 4))",
    "behind an activation": "net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.ReLU(inplace=True))",
    "behind a class of the program": "net = nn.Sequential(Block(), nn.ReLU(inplace=True))",
    "children that a loop runs": (
        "net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True))\nfor layer in net:\n    x = layer(x)\n    kept.append(x)"
    ),
    "a part of the container": (
        "net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True))\nh = net[0](x)\ny = torch.sigmoid(h) + net[1](h)"
    ),
    "children of each block": (
        "def block():\n    return nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True))\nblocks = [block(), block()]\n"
        "for one in blocks:\n    for layer in one:\n        x = layer(x)"
    ),
    "a hook on a layer": (
        "net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True))\nnet[0].register_forward_hook(lambda m, i, o: kept.append(o))"
    ),
    "a plain list of layers": "layers = nn.ModuleList([nn.Linear(3, 4), nn.ReLU(inplace=True)])\nfor l in layers:\n    x = l(x)",
}  # fmt: skip
# The body of a forward whose write is hardly meant, and what the message names.
UNLIKELY = {
    "another branch made it": ("if self.a:\n    x = torch.relu(x)\nelse:\n    x = F.pad(x, [1, 1])\n    x += y\nreturn x", RELU),
    "the branch returned": ("x = F.pad(x, [1, 1])\nif self.a:\n    x = torch.relu(x)\n    return x\nx += y\nreturn x", RELU),
    "made in place, saved at version 1": ("x = F.relu(self.fc(x), inplace=True)\nx += y\nreturn x", RELU),
    "made anew, saved at version 0": ("x = F.relu(self.fc(x))\nx += y\nreturn x", RELU_IN_PLACE),
}  # fmt: skip
# One that is meant; the lines that change.
BODIES = {
    "a branch made another": (
        "x = F.relu(self.up(x))\nif self.a:\n    x = F.pad(x, [1, 1])\nx += y\nreturn x",
        RELU,
        ["-x += y", "+x = x + y"],
    ),
    "either branch": (
        "if self.a:\n    x = torch.relu(x)\nelse:\n    x = F.pad(x, [1, 1])\nx += y\nreturn x",
        RELU,
        ["-x += y", "+x = x + y"],
    ),
    "by a test in the expression": (
        "x = F.relu(x) if self.a else F.pad(x, [1, 1])\nx += y\nreturn x",
        RELU,
        ["-x += y", "+x = x + y"],
    ),
    "through a view": ("h = F.relu(x)\nx = h.view(4, -1)\nx += y\nreturn x", RELU, ["-x += y", "+x = x + y"]),
    "in place, and written again": (
        "x = F.relu(self.fc(x), inplace=True)\nx += y\nreturn x",
        RELU_IN_PLACE,
        ["-x += y", "+x = x + y"],
    ),
    "a norm": (
        "n = x.norm(dim=1)\nn += 1e-6\nreturn x / n[:, None]",
        {"node": "LinalgVectorNorm", "version": 1, "expected": 0},
        ["-n += 1e-6", "+n = n + 1e-6"],
    ),
}


def program(body: str) -> str:
    lines = "".join(f"        {line}\n" for line in body.split("\n"))
    return f"{HEAD}class N(nn.Module):\n    def forward(self, x, y):\n{lines}"


@pytest.mark.parametrize("body", INNOCENT.values(), ids=INNOCENT)
def test_what_nobody_else_has_may_be_overwritten(body: str, tmp_path: pathlib.Path) -> None:
    """An activation behind a layer that does not keep its result is not switched."""
    source = f"{HEAD}{body}\n"
    assert rewritten(tmp_path, "inplace_argument_off", source, fields=RELU) == source


@pytest.mark.parametrize("body", GUILTY.values(), ids=GUILTY)
def test_an_activation_that_may_be_guilty_is_switched(body: str, tmp_path: pathlib.Path) -> None:
    """Where somebody else may have its input, it makes a new tensor."""
    after = rewritten(tmp_path, "inplace_argument_off", f"{HEAD}{body}\n", fields=RELU)
    assert "inplace=False" in after


@pytest.mark.parametrize(("body", "fields"), UNLIKELY.values(), ids=UNLIKELY)
def test_a_write_that_the_message_does_not_mean_is_hardly_believed(
    body: str, fields: dict[str, object], tmp_path: pathlib.Path
) -> None:
    """What made the old value cannot be what the message names, by its branch or by its version."""
    found = best("write_out_of_place", write(tmp_path, {"train.py": program(body)}), fields=fields)
    assert found is None or found.belief < 0


@pytest.mark.parametrize(("body", "fields", "changes"), BODIES.values(), ids=BODIES)
def test_every_definition_that_reaches_the_write_counts(
    body: str, fields: dict[str, object], changes: list[str], tmp_path: pathlib.Path
) -> None:
    """The write whose old value the named operation may have made is put out of place; no other one."""
    source = program(body)
    after = rewritten(tmp_path, "write_out_of_place", source, fields=fields)
    assert [line[:1] + line[1:].lstrip() for line in diff_lines(source, after)] == changes


@pytest.mark.parametrize(("version", "number"), [(1, 1), (5, 3)])
def test_a_tensor_of_many_versions_was_written_in_a_loop(version: int, number: int, tmp_path: pathlib.Path) -> None:
    """Of two writes to it the one that runs once is not what made version 5."""
    body = "x += y\nfor layer in self.layers:\n    x += layer(y)\nreturn x"
    program_ = write(tmp_path, {"train.py": program(body)})
    found = best("write_out_of_place", program_, fields={"node": "Mul", "version": version, "expected": 0})
    assert found is not None and found.culprit is not None
    assert found.culprit.line == line_of(program(body), body.split("\n")[number - 1])


def test_writes_that_read_alike_go_together(tmp_path: pathlib.Path) -> None:
    """Where nothing tells them apart one edit takes both; what reads otherwise, or stands elsewhere, is not in it."""
    body = "a = self.f(x)\nb = self.g(y)\na /= a.norm()\nb /= b.norm()\na *= 2\nreturn a @ b"
    elsewhere = "\n    def other(self, a):\n        a /= a.norm()\n        return a\n"
    found = best(
        "write_out_of_place",
        write(tmp_path, {"train.py": program(body) + elsewhere}),
        fields={"node": "DivBackward0", "version": 1, "expected": 0},
    )
    assert found is not None
    assert [edit.new for edit in found.edits] == ["a = a / a.norm()", "b = b / b.norm()"]
