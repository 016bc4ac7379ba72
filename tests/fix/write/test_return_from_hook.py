"""A forward hook that writes its output returns the new one."""

from __future__ import annotations

import contextlib
import io
import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

TOP = "import functools\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\nnet = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))\n"
RIGHT = {
    "a hook that returns already": "def hook(m, i, o):\n    return o.clamp(-1, 1)\nnet[1].register_forward_hook(hook)",
    "what it writes is its own": "def hook(m, i, o):\n    seen = o.detach().clone()\n    seen.clamp_(-1, 1)\nnet[1].register_forward_hook(hook)",
    "a statistic": "stats = {}\ndef hook(m, i, o):\n    stats[m] = o.abs().mean()\nnet[1].register_forward_hook(hook)",
    "under no_grad": "def hook(m, i, o):\n    with torch.no_grad():\n        o.clamp_(-1, 1)\nnet[1].register_forward_hook(hook)",
    "a hook of the backward": "def hook(m, i, o):\n    o.clamp_(-1, 1)\nnet[1].register_full_backward_hook(hook)",
    "a hook of both": "def hook(m, i, o):\n    o.clamp_(-1, 1)\nnet[1].register_forward_hook(hook)\nnet[2].register_full_backward_hook(hook)",
    "no hook": "def hook(m, i, o):\n    o.clamp_(-1, 1)\nhook(net, x, y)",
    "called by the program too": "def hook(m, i, o):\n    o.clamp_(-1, 1)\nnet[1].register_forward_hook(hook)\nhook(net, None, net(x))",
    "another value is returned": "def hook(m, i, o):\n    o.clamp_(-1, 1)\n    return o * 2 if m.training else None\nnet[1].register_forward_hook(hook)",
    "an element of the output": "def hook(m, i, o):\n    o[0].clamp_(-1, 1)\nnet[1].register_forward_hook(hook)",
    "the output is bound anew": "def hook(m, i, o):\n    o = o[0]\n    o.clamp_(-1, 1)\nnet[1].register_forward_hook(hook)",
    "the input is written": "def hook(m, i, o):\n    i[0].clamp_(-1, 1)\nnet[1].register_forward_hook(hook)",
}
WRONG = {
    "a method": (
        "def hook(m, i, o):\n    o.clamp_(-0.1, 0.1)\nnet[1].register_forward_hook(hook)",
        ["-    o.clamp_(-0.1, 0.1)", "+    return o.clamp(-0.1, 0.1)"],
    ),
    "an augmented assignment behind others": (
        "def hook(m, i, o):\n    scale = 0.5\n    o *= scale + 1\n    print(m)\nnet[1].register_forward_hook(hook)",
        ["-    o *= scale + 1", "+    o = o * (scale + 1)", "+    return o"],
    ),
    "a function, in a branch, with an early end": (
        "def hook(m, i, o):\n    if not m.training:\n        return\n    if m is not None:\n        torch.sigmoid_(o)\nnet[1].register_forward_hook(hook)",
        ["-        torch.sigmoid_(o)", "+        o = torch.sigmoid(o)", "+    return o"],
    ),
    "an end behind the write": (
        "def hook(m, i, o):\n    o.mul_(2)\n    if m.training:\n        return None\n    print(m)\nnet[1].register_forward_hook(hook)",
        ["-    o.mul_(2)", "+    o = o.mul(2)", "-        return None", "+        return o", "+    return o"],
    ),
    "a part": (
        "def hook(m, i, o):\n    o[:, 0] = 0.0\nnet[1].register_forward_hook(hook)",
        ["+    o = o.clone()", "+    return o"],
    ),
    "returned in place": (
        "def hook(m, i, o):\n    return o.clamp_(-0.1, 0.1)\nnet[1].register_forward_hook(hook)",
        ["-    return o.clamp_(-0.1, 0.1)", "+    return o.clamp(-0.1, 0.1)"],
    ),
    "a lambda": (
        "net[1].register_forward_hook(lambda m, i, o: o.clamp_(-0.1, 0.1))",
        ["-net[1].register_forward_hook(lambda m, i, o: o.clamp_(-0.1, 0.1))", "+net[1].register_forward_hook(lambda m, i, o: o.clamp(-0.1, 0.1))"],
    ),
    "noise": (
        "def hook(m, i, o):\n    o += 0.1\n    o.masked_fill_(o > 0, 0.0)\nnet[1].register_forward_hook(hook)",
        ["-    o += 0.1", "-    o.masked_fill_(o > 0, 0.0)", "+    o = o + 0.1", "+    o = o.masked_fill(o > 0, 0.0)", "+    return o"],
    ),
    "a method of an object": (
        "class Limit:\n    def hook(self, m, i, o):\n        o.clamp_(-0.1, 0.1)\n    def attach(self, net):\n        net[1].register_forward_hook(self.hook)\nLimit().attach(net)",
        ["-        o.clamp_(-0.1, 0.1)", "+        return o.clamp(-0.1, 0.1)"],
    ),
    "an object that can be called": (
        "class Limit:\n    def __call__(self, m, i, o):\n        o.clamp_(-0.1, 0.1)\nlimit = Limit()\nfor one in net:\n    one.register_forward_hook(limit)",
        ["-        o.clamp_(-0.1, 0.1)", "+        return o.clamp(-0.1, 0.1)"],
    ),
    "a partial": (
        "def limit(bound, m, i, o):\n    o.clamp_(-bound, bound)\nnet[1].register_forward_hook(functools.partial(limit, 0.1))",
        ["-    o.clamp_(-bound, bound)", "+    return o.clamp(-bound, bound)"],
    ),
    "with keyword arguments": (
        "def limit(m, args, kwargs, out):\n    out.clamp_(-0.1, 0.1)\nnet[1].register_forward_hook(limit, with_kwargs=True)",
        ["-    out.clamp_(-0.1, 0.1)", "+    return out.clamp(-0.1, 0.1)"],
    ),
    "a factory that is handed on": (
        "def limiter(bound):\n    def hook(m, i, o):\n        o.clamp_(-bound, bound)\n    return hook\ndef attach(net, make):\n    for one in net:\n        if isinstance(one, nn.Tanh):\n            one.register_forward_hook(make())\nattach(net, lambda: limiter(0.1))",
        ["-        o.clamp_(-bound, bound)", "+        return o.clamp(-bound, bound)"],
    ),
    "two factories with hooks of one name": (
        "def watcher():\n    def hook(m, i, o):\n        print(o.mean().item())\n    return hook\ndef limiter(bound):\n    def hook(m, i, o):\n        o.clamp_(-bound, bound)\n    return hook\nnet[0].register_forward_hook(watcher())\nnet[1].register_forward_hook(limiter(0.1))",
        ["-        o.clamp_(-bound, bound)", "+        return o.clamp(-bound, bound)"],
    ),
    "a name that was chosen before": (
        "def small(m, i, o):\n    o.mul_(0.1)\nhook = small if net.training else None\nnet[1].register_forward_hook(hook)",
        ["-    o.mul_(0.1)", "+    return o.mul(0.1)"],
    ),
}  # fmt: skip
STEP = "\ntorch.manual_seed(0)\nout = net(torch.randn(5, 3, generator=torch.Generator().manual_seed(1)))\nloss = out.pow(2).mean()\nloss.backward()\n"


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(body: str, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed for what is no forward hook, or does not write its output, or returns something else."""
    assert rewritten(tmp_path, "return_from_hook", TOP + body) == TOP + body


@pytest.mark.parametrize(("body", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(body: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The hook returns what it computes; a second time nothing is left to do."""
    after = rewritten(tmp_path, "return_from_hook", TOP + body + "\n")
    assert diff_lines(TOP + body, after) == changes
    assert rewritten(tmp_path, "return_from_hook", after) == after


@pytest.mark.torch
@pytest.mark.parametrize(("body", "changes"), WRONG.values(), ids=WRONG)
def test_mended_programs_train(body: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The loss is that of the program with the write; its backward runs."""
    pytest.importorskip("torch")
    before = run(
        TOP
        + "torch.manual_seed(0)\nnet[0].reset_parameters()\nnet[2].reset_parameters()\n"
        + body
        + STEP.partition("loss.backward")[0]
    )
    source = TOP + "torch.manual_seed(0)\nnet[0].reset_parameters()\nnet[2].reset_parameters()\n" + body + STEP
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        run(source)
    after = run(rewritten(tmp_path, "return_from_hook", source))
    assert after["loss"].item() == before["loss"].item()


def run(source: str) -> dict:
    scope: dict = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(source, "train.py", "exec"), scope)  # noqa: S102
    return scope
