"""A loop that writes the tensors of a list in place puts new tensors into the list."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

TOP = "import torch\nimport torch.nn.functional as F\n"
MADE = "    features = [torch.tanh(one(x)) for one in net]\n"
RIGHT = {
    "parameters": "def f(net):\n    for p in net.parameters():\n        p.mul_(0.5)\n",
    "a tensor": "def f(net, x):\n    rows = net(x)\n    for row in rows:\n        row.mul_(0.5)\n",
    "a tuple": "def f(net, x):\n    rows = (net(x), x)\n    for row in rows:\n        row.mul_(0.5)\n",
    "nobody calls it": "def f(rows):\n    for row in rows:\n        row.mul_(0.5)\n",
    "a caller's tensor": "def f(rows):\n    for row in rows:\n        row.mul_(0.5)\ndef g(net, x):\n    rows = net(x)\n    f(rows)\n",
    "another name is read afterwards": "def f(net, x):\n    h = torch.tanh(net(x))\n    rows = [h]\n    for row in rows:\n        row.mul_(0.5)\n    return rows, h\n",
    "numbers": "def f(net, x):\n    rows = [1, 2]\n    for row in rows:\n        row += 1\n",
}
WRONG = {
    "a list of its own": (
        "def f(net, x):\n" + MADE + "    for h in features:\n        h.mul_(0.5)\n    return sum(features)\n",
        ["-    for h in features:", "-        h.mul_(0.5)", "+    for index, h in enumerate(features):", "+        features[index] = h.mul(0.5)"],
    ),
    "read again in the loop": (
        "def f(net, x):\n" + MADE + "    for h in features:\n        h *= 0.5\n        print(h.mean())\n    return sum(features)\n",
        ["-    for h in features:", "-        h *= 0.5", "+    for index, h in enumerate(features):", "+        h = h * 0.5", "+        features[index] = h"],
    ),
    "counted already": (
        "def f(net, x):\n" + MADE + "    for i, h in enumerate(features):\n        F.relu_(h)\n    return sum(features)\n",
        ["-        F.relu_(h)", "+        features[i] = F.relu(h)"],
    ),
    "a helper of a list": (
        "def damp(features, s):\n    for h in features:\n        h.mul_(s)\ndef f(net, x):\n    found = []\n    for one in net:\n        x = torch.tanh(one(x))\n        found.append(x)\n    damp(found, 0.5)\n    return sum(found)\n",
        ["-    for h in features:", "-        h.mul_(s)", "+    for index, h in enumerate(features):", "+        features[index] = h.mul(s)"],
    ),
    "side by side with others": (
        "def f(net, x, weights):\n" + MADE + "    for h, w in zip(features, weights):\n        h.mul_(w)\n    return sum(features)\n",
        ["-    for h, w in zip(features, weights):", "-        h.mul_(w)", "+    for index, (h, w) in enumerate(zip(features, weights)):", "+        features[index] = h.mul(w)"],
    ),
    "a list that a module hands out": (
        "class Trunk(torch.nn.Module):\n    def forward(self, x):\n        levels = []\n        levels.append(torch.tanh(x))\n        return levels\n"
        "def damp(features):\n    for h in features:\n        h.mul_(2)\n"
        "trunk = Trunk()\ndef f(x):\n    found = trunk(x)\n    damp(found)\n    return sum(found)\n",
        ["-    for h in features:", "-        h.mul_(2)", "+    for index, h in enumerate(features):", "+        features[index] = h.mul(2)"],
    ),
    "the values of a dictionary": (
        "def f(net, x):\n    out = {'a': torch.tanh(net(x))}\n    for h in out.values():\n        h.clamp_(max=1)\n    return out['a']\n",
        ["-    for h in out.values():", "-        h.clamp_(max=1)", "+    for key, h in out.items():", "+        out[key] = h.clamp(max=1)"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(body: str, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed for what is no list of tensors, or whose tensors have other names."""
    assert rewritten(tmp_path, "write_back_into_list", TOP + body) == TOP + body


@pytest.mark.parametrize(("body", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(body: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The list holds what was computed; a second time nothing is left to do."""
    after = rewritten(tmp_path, "write_back_into_list", TOP + body)
    assert diff_lines(TOP + body, after) == changes
    assert rewritten(tmp_path, "write_back_into_list", after) == after
