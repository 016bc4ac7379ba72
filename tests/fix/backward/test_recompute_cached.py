"""What is made from parameters is computed in each step; caches of data, and those that are emptied, stay."""

from __future__ import annotations

import dataclasses

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Fact
from explainer.model.trace import MADE_ONCE
from explainer.verification.live_report import TRACED
from explainer.verification.traced import with_trace
from tests.fix.rewriting import best, diff_lines, failed, line_of, rewritten, write

HEAD = """import functools
from functools import cached_property, lru_cache

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("edges", torch.rand(4, 4))
        self.kernel, self.rows = None, {}

"""
TAIL = """

net, x = Net(), torch.randn(3, 4)
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(2):
    loss = net(x).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
RIGHT = {
    "a property of buffers": """    @cached_property
    def degree(self):
        return self.edges.sum(0)

    def forward(self, x):
        return self.mix(x) / self.degree
""",
    "made without grad": """    @cached_property
    def operator(self):
        with torch.no_grad():
            return self.mix(self.edges)

    def forward(self, x):
        return self.mix(x) @ self.operator
""",
    "emptied for each step": """    @cached_property
    def operator(self):
        return self.mix(self.edges)

    def forward(self, x):
        out = x @ self.operator @ self.operator
        del self.operator
        return out
""",
    "emptied through its dict": """    @cached_property
    def operator(self):
        return self.mix(self.edges)

    def forward(self, x):
        self.__dict__.pop("operator", None)
        return x @ self.operator @ self.operator
""",
    "memoised and cleared": """    @functools.lru_cache(maxsize=None)
    def operator(self):
        return self.mix(self.edges)

    def forward(self, x):
        self.operator.cache_clear()
        return x @ self.operator()
""",
    "noise that a step shares": """    @cached_property
    def operator(self):
        return nn.functional.dropout(self.mix(self.edges), 0.5)

    def forward(self, x):
        return x @ self.operator @ self.operator
""",
    "an attribute that a step resets": """    def operator(self):
        if self.kernel is None:
            self.kernel = self.mix(self.edges)
        return self.kernel

    def forward(self, x):
        self.kernel = None
        return x @ self.operator() @ self.operator()
""",
    "an attribute of data": """    def operator(self):
        if self.kernel is None:
            self.kernel = self.edges.softmax(0)
        return self.kernel

    def forward(self, x):
        return self.mix(x) @ self.operator()
""",
    "a detached attribute": """    def operator(self):
        if self.kernel is None:
            self.kernel = self.mix(self.edges).detach()
        return self.kernel

    def forward(self, x):
        return self.mix(x) @ self.operator()
""",
    "a layer that is made late": """    def forward(self, x):
        if self.kernel is None:
            self.kernel = nn.Linear(4, 4)
        return self.kernel(self.mix(x))
""",
    "an argument with a default": """    def forward(self, x, weight=None):
        if weight is None:
            weight = self.scale.exp()
        return self.mix(x) * weight
""",
}
WRONG = {
    "a cached property": (
        """    @cached_property
    def operator(self):
        return self.mix(self.edges).softmax(0)

    def forward(self, x):
        return x @ self.operator @ self.operator
""",
        ["-    @cached_property", "+    @property"],
    ),
    "a parameter behind a property": (
        """    @functools.cached_property
    def weights(self):
        scale = self.scale.exp()
        return scale / scale.sum()

    def forward(self, x):
        return self.mix(x) * self.weights
""",
        ["-    @functools.cached_property", "+    @property"],
    ),
    "a memoised method": (
        """    @lru_cache(maxsize=1)
    def operator(self):
        return self.mix(self.edges)

    def forward(self, x):
        return x @ self.operator()
""",
        ["-    @lru_cache(maxsize=1)"],
    ),
    "an attribute that is filled once": (
        """    def operator(self):
        if self.kernel is None:
            hidden = torch.tanh(self.mix(self.edges))
            self.kernel = hidden / hidden.norm()
        return self.kernel

    def forward(self, x):
        return x @ self.operator()
""",
        [
            "-        if self.kernel is None:",
            "-            hidden = torch.tanh(self.mix(self.edges))",
            "-            self.kernel = hidden / hidden.norm()",
            "+        hidden = torch.tanh(self.mix(self.edges))",
            "+        self.kernel = hidden / hidden.norm()",
        ],
    ),
    "an attribute that is not there at first": (
        """    def forward(self, x):
        if not hasattr(self, "bias"):
            self.bias = self.mix(self.edges).sum(0)
        return x * self.bias
""",
        [
            '-        if not hasattr(self, "bias"):',
            "-            self.bias = self.mix(self.edges).sum(0)",
            "+        self.bias = self.mix(self.edges).sum(0)",
        ],
    ),
    "an entry of a dict": (
        """    def forward(self, x):
        if len(x) not in self.rows:
            self.rows[len(x)] = self.scale.repeat(len(x), 1)
        return x * self.rows[len(x)].exp()
""",
        [
            "-        if len(x) not in self.rows:",
            "-            self.rows[len(x)] = self.scale.repeat(len(x), 1)",
            "+        self.rows[len(x)] = self.scale.repeat(len(x), 1)",
        ],
    ),
}


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_other_caches_stay(tmp_path, body: str) -> None:
    """Data, detached values, noise and caches that the program empties are left alone."""
    source = HEAD + body + TAIL
    assert rewritten(tmp_path, "recompute_cached", source, "loss.backward") == source


@pytest.mark.parametrize(("body", "wanted"), WRONG.values(), ids=WRONG)
def test_the_cache_goes(tmp_path, body: str, wanted: list[str]) -> None:
    """The value is computed at each call; a second time nothing is left to do."""
    source = HEAD + body + TAIL
    after = rewritten(tmp_path, "recompute_cached", source, "loss.backward")
    assert diff_lines(source, after) == wanted
    assert rewritten(tmp_path, "recompute_cached", after, "loss.backward") == after


@pytest.mark.parametrize(("name", "wanted"), [("a cached property", None), ("an entry of a dict", "unsafe")])
def test_a_cache_by_key_may_be_of_constants(tmp_path, name: str, wanted: str | None) -> None:
    """Features by key may be meant as constants, which only the author can say."""
    program = write(tmp_path, {"train.py": HEAD + WRONG[name][0] + TAIL})
    assert best("recompute_cached", program).applicability == wanted


EMPTIED = """import torch
from torch import nn

class Bias(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(1, 4)
        self.kept = None

    def reset(self):
        self.kept = None

    def forward(self, length):
        if self.kept is None or self.kept.size(0) != length:
            self.kept = self.net(torch.ones(length, 1))
        return self.kept
"""


def test_a_cache_that_is_emptied_goes_where_a_checkpoint_replays_it(tmp_path) -> None:
    """Between steps an emptied cache is right; inside a segment the replay finds it full."""
    assert rewritten(tmp_path, "recompute_cached", EMPTIED) == EMPTIED
    after = rewritten(tmp_path, "recompute_cached", EMPTIED, options={"emptied": True})
    guard = "        if self.kept is None or self.kept.size(0) != length:\n    "
    assert after == EMPTIED.replace(guard, "")


PARTS = (
    EMPTIED
    + """
bias, out = Bias(), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*bias.parameters(), *out.parameters()], lr=0.1)
optimizer.register_step_post_hook(lambda *_: bias.reset())
for epoch in range(2):
    optimizer.zero_grad()
    for part in torch.randn(3, 5, 4):
        loss = out(part + bias(5)).sum()
        loss.backward()
    optimizer.step()
"""
)


def mended_by_trace(tmp_path, source: str) -> str:
    """A program with the edit that a trace of its failure leads to."""
    pytest.importorskip("torch")
    import gradfix

    program = write(tmp_path, {"train.py": source})
    with pytest.raises(RuntimeError, match="second time") as raised, gradfix.trace():
        exec(compile(source, str(tmp_path / "train.py"), "exec"), {})  # noqa: S102
    incident = with_trace(failed({"train.py": line_of(source, ".backward()")}), getattr(raised.value, TRACED))
    found = best("recompute_cached", program, incident=incident)
    assert found is not None
    after = splice(source, found.edits)
    assert after is not None
    exec(compile(after, "after", "exec"), {})  # noqa: S102
    return after


@pytest.mark.torch
def test_the_losses_of_one_step_share_an_emptied_cache(tmp_path) -> None:
    """A trace saw that no optimizer had stepped: its graph is kept for the other losses of the step."""
    after = mended_by_trace(tmp_path, PARTS)
    assert after == PARTS.replace("loss.backward()", "loss.backward(retain_graph=True)")


SELDOM = (
    EMPTIED
    + """
bias, out = Bias(), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*bias.parameters(), *out.parameters()], lr=0.1)
for epoch in range(2):
    bias.reset()
    for part in torch.randn(3, 5, 4):
        loss = out(part + bias(5)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
)


@pytest.mark.torch
def test_a_cache_that_is_emptied_too_seldom_is_filled_anew_in_training(tmp_path) -> None:
    """A trace saw that an optimizer had stepped since: the evaluation keeps the cache, a step has its own."""
    after = mended_by_trace(tmp_path, SELDOM)
    assert after == SELDOM.replace("if self.kept is None or", "if self.training or self.kept is None or")


def test_a_state_that_goes_on_is_no_cache(tmp_path) -> None:
    """`self.kept` that a step binds to its own result is carried, whatever a trace saw."""
    source = SELDOM.replace("        return self.kept", "        self.kept = self.kept * 0.5\n        return self.kept")
    incident = dataclasses.replace(
        failed({"train.py": line_of(source, ".backward()")}), facts=(Fact(name=MADE_ONCE, value="add"),)
    )
    program = write(tmp_path, {"train.py": source})
    assert best("recompute_cached", program, incident=incident) is None
