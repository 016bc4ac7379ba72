"""A hook that was seen to write the gradient of another branch returns a new one."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Incident, LogLine
from explainer.model.verification import WRITES_GIVEN
from tests.fix.rewriting import diff_lines, line_of, write

TOP = "import functools\nimport torch\nx = torch.rand(4, 3, requires_grad=True)\nslow, fast = x.exp(), x.sin()\n"
END = "\n((slow + fast) * torch.arange(3.0)).sum().backward()\nout = x.grad\n"
# `SEEN` stands in the first line of the function that was seen.
RIGHT = {
    "another line": "def hook(g):\n    g.mul_(0.1)\nfast.register_hook(hook)  # SEEN",
    "the program calls it too": "def hook(g):  # SEEN\n    g.mul_(0.1)\nfast.register_hook(hook)\nhook(torch.ones(2))",
    "a hook of another kind too": "def hook(g):  # SEEN\n    g.mul_(0.1)\nfast.register_hook(hook)\nx.register_post_accumulate_grad_hook(hook)",
    "something else is returned": "def hook(g):  # SEEN\n    g.mul_(0.1)\n    return g + 1\nfast.register_hook(hook)",
    "a lambda that calls a function": "def scale(g):\n    g.mul_(0.1)\nfast.register_hook(lambda g: scale(g))  # SEEN",
}
WRONG = {
    "a lambda": ("fast.register_hook(lambda g: g.mul_(0.1))  # SEEN", ["fast.register_hook(lambda g: g.mul(0.1))  # SEEN"]),
    "a lambda of two": ("fast.register_hook(lambda g: g.mul_(0.1).clamp_(-1, 1))  # SEEN", ["fast.register_hook(lambda g: g.mul(0.1).clamp(-1, 1))  # SEEN"]),
    "a lambda without a plain form": ("fast.register_hook(lambda g: g.zero_())  # SEEN", ["fast.register_hook(lambda g: g.clone().zero_())  # SEEN"]),
    "a function of torch": ("fast.register_hook(lambda g: torch.neg_(g))  # SEEN", ["fast.register_hook(lambda g: torch.neg(g))  # SEEN"]),
    "nothing returned": ("def hook(g):  # SEEN\n    g.mul_(0.1)\nfast.register_hook(hook)", ["return g.mul(0.1)"]),
    "the write returned": ("def hook(g):  # SEEN\n    return g.clamp_(-0.1, 0.1)\nfast.register_hook(hook)", ["return g.clamp(-0.1, 0.1)"]),
    "the gradient returned": ("def hook(g):  # SEEN\n    g *= 0.1\n    return g\nfast.register_hook(hook)", ["g = g * 0.1"]),
    "bound again": ("def hook(g):  # SEEN\n    g = g.mul_(0.1)\n    return g\nfast.register_hook(hook)", ["g = g.mul(0.1)"]),
    "in a branch": (
        "def hook(g):  # SEEN\n    if g.norm() > 1:\n        g.mul_(0.1)\nfast.register_hook(hook)",
        ["g = g.mul(0.1)", "return g"],
    ),
    "under no_grad": (
        "@torch.no_grad()  # SEEN\ndef hook(g):\n    g.div_(g.norm())\nfast.register_hook(hook)",
        ["return g.div(g.norm())"],
    ),
    "a part": ("def hook(g):  # SEEN\n    g[:, 1:] = 0\nfast.register_hook(hook)", ["g = g.clone()", "return g"]),
    "past autograd": ("def hook(g):  # SEEN\n    g.data.neg_()\nfast.register_hook(hook)", ["g = g.clone()", "return g"]),
    "under another name": (
        'def hook(g):  # SEEN\n    """Quiet."""\n    flat = g.view(-1)\n    flat[1:] = 0\n    return None\nfast.register_hook(hook)',
        ["g = g.clone()", "return g"],
    ),
    "a factory": (
        "def scale(s):\n    def hook(g):  # SEEN\n        g.mul_(s)\n    return hook\nfast.register_hook(scale(0.1))",
        ["return g.mul(s)"],
    ),
    "a partial": ("def hook(s, g):  # SEEN\n    g.mul_(s)\nfast.register_hook(functools.partial(hook, 0.1))", ["return g.mul(s)"]),
    "an object": (
        "class Scale:\n    def __call__(self, grad):  # SEEN\n        grad.mul_(0.1)\nfast.register_hook(hook=Scale())",
        ["return grad.mul(0.1)"],
    ),
    "a method": (
        "class Scale:\n    def on(self, t):\n        t.register_hook(self.scaled)\n    def scaled(self, grad):  # SEEN\n        grad.mul_(0.1)\nScale().on(fast)",
        ["return grad.mul(0.1)"],
    ),
}  # fmt: skip


def mended(source: str, folder: pathlib.Path) -> str:
    """The program after the best edit for the function that was seen."""
    seen = LogLine(text=f"seen in the live program: train.py:{line_of(source, 'SEEN')} {WRITES_GIVEN}")
    context = Context(program=write(folder, {"train.py": source}), incident=Incident(log=(seen,)))
    best = max(find_codemod("new_gradient_from_hook")(context), key=lambda one: one.belief, default=None)
    return splice(source, best.edits) or "" if best is not None and best.edits else source


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_the_rest_stays(body: str, tmp_path: pathlib.Path) -> None:
    """Nothing is written where the function is for more than that hook, or returns what is not known."""
    assert mended(TOP + body, tmp_path) == TOP + body


@pytest.mark.torch
@pytest.mark.parametrize(("body", "lines"), WRONG.values(), ids=WRONG)
def test_a_new_gradient_is_returned(body: str, lines: list[str], tmp_path: pathlib.Path) -> None:
    """The other branch has the gradient that is its own."""
    torch = pytest.importorskip("torch")
    after = mended(TOP + body + END, tmp_path)
    added = [line[1:].strip() for line in diff_lines(TOP + body + END, after) if line.startswith("+")]
    assert added == lines
    # The same hook on a gradient that nobody else has.
    meant = run(TOP + body + END.replace("slow + fast", "slow.detach() + fast") + "hooked = x.grad\n")["hooked"]
    x = run(after)["x"]
    torch.testing.assert_close(x.grad, meant + x.detach().exp() * torch.arange(3.0))


def run(source: str) -> dict:
    import torch

    torch.manual_seed(0)
    scope: dict = {}
    exec(compile(source, "train.py", "exec"), scope)  # noqa: S102 - the program of a test
    return scope
