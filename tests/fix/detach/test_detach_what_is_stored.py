"""A store of states keeps them without their graph where a later step is handed them; other stores stay as they are."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

STEP = """

net = nn.GRU(4, 4)
head = nn.Linear(4, 1)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
memory = Memory()
for step in range(3):
    optimizer.zero_grad()
"""
END = """    loss = head(out).sum()
    loss.backward()
    optimizer.step()
"""
CARRIED = (
    "    out, last = net(torch.randn(5, 2, 4), memory.fetch([0, 1]).unsqueeze(0))\n    memory.store([0, 1], last[0])\n"
)


def store(body: str, fetch: str = "return torch.stack([self.states.get(key, torch.zeros(4)) for key in keys])") -> str:
    """A program whose store has this body."""
    return f"""import torch
from torch import nn


class Memory:
    def __init__(self):
        self.states = {{}}

    def fetch(self, keys):
        {fetch}

    def store(self, keys, values):
        {body}
"""


LOOP = "for key, value in zip(keys, values):\n            self.states[key] = value"
WRONG = {
    "entry by entry": (store(LOOP) + STEP + CARRIED + END, "            self.states[key] = value"),
    "all at once": (
        store("self.states[0] = values", "return self.states.get(0, torch.zeros(2, 4))") + STEP + CARRIED + END,
        "        self.states[0] = values",
    ),
}
CACHE = """import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM


class Memory:
    def __init__(self, keep):
        self.keep, self.cache = keep, DynamicCache()

    def update(self, cache):
        pairs = [(layer.keys[:, :, -self.keep:]DETACHED, layer.values[:, :, -self.keep:]DETACHED) for layer in cache.layers]
        self.cache = DynamicCache(pairs)


net = LlamaForCausalLM(LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
memory = Memory(8)
for step in range(3):
    optimizer.zero_grad()
    tokens = torch.randint(9, (2, 6))
    out = net(tokens, past_key_values=memory.cache, use_cache=True, labels=tokens)
    memory.update(out.past_key_values)
    out.loss.backward()
    optimizer.step()
"""
RIGHT = {
    "a cache without its graph": CACHE.replace("DETACHED", ".detach()"),
    "a cache that no step reads": CACHE.replace("DETACHED", "").replace("past_key_values=memory.cache, ", ""),
    "detached": store(LOOP.replace("= value", "= value.detach()")) + STEP + CARRIED + END,
    "under no_grad": store("with torch.no_grad():\n            for key, value in zip(keys, values):\n                self.states[key] = value")
    + STEP + CARRIED.replace("last[0]", "last[0].detach()") + END,
    "read after it is stored": store(LOOP) + STEP
    + "    out, last = net(torch.randn(5, 2, 4))\n    memory.store([0, 1], last[0])\n    out = out + memory.fetch([0, 1])\n" + END,
    "data": store(LOOP) + STEP
    + "    out, last = net(torch.randn(5, 2, 4) + memory.fetch([0, 1]))\n    memory.store([0, 1], torch.randn(2, 4))\n" + END,
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_detached_where_it_is_stored(name: str, tmp_path: pathlib.Path) -> None:
    """The line that stores detaches, and nothing else changes."""
    text, line = WRONG[name]
    after = rewritten(tmp_path, "detach_what_is_stored", text)
    assert diff_lines(text, after) == [f"-{line}", f"+{line}.detach()"]
    assert rewritten(tmp_path, "detach_what_is_stored", after) == after


@pytest.mark.parametrize("name", RIGHT)
def test_left_alone(name: str, tmp_path: pathlib.Path) -> None:
    """What is detached, no recurrence or no graph is none of its business."""
    assert rewritten(tmp_path, "detach_what_is_stored", RIGHT[name]) == RIGHT[name]


@pytest.mark.torch
@pytest.mark.parametrize("name", WRONG)
def test_the_program_trains(name: str) -> None:
    """As it was, the second step fails; with the edit the program runs, and the first gradients are those that they were."""
    torch = pytest.importorskip("torch")
    text, line = WRONG[name]
    before, after = {}, {}
    torch.manual_seed(0)
    with pytest.raises(RuntimeError, match="second time"):
        exec(text, before)
    torch.manual_seed(0)
    exec(text.replace(line, f"{line}.detach()").replace("range(3)", "range(1)"), after)
    want = [one.grad.clone() for one in after["net"].parameters()]
    torch.manual_seed(0)
    exec(text.replace("range(3)", "range(1)"), before)
    assert all(torch.equal(one.grad, other) for one, other in zip(before["net"].parameters(), want, strict=True))
    exec(text.replace(line, f"{line}.detach()"), after)


@pytest.mark.torch
def test_a_cache_that_is_made_anew(tmp_path: pathlib.Path) -> None:
    """An object of a library has no `detach`: what it is made of has, and then the program runs."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers", minversion="4.56")
    source = CACHE.replace("DETACHED", "")
    with pytest.raises(RuntimeError, match="second time"):
        exec(source, {})
    after = rewritten(tmp_path, "detach_what_is_stored", source)
    assert after == CACHE.replace("DETACHED", ".detach()")
    space: dict = {}
    exec(after, space)
    assert all(one.grad is not None and bool(torch.isfinite(one.grad).all()) for one in space["net"].parameters())


PAIRS = """import torch
from torch import nn


class Bank:
    def __init__(self):
        self.slots = {}

    def load(self, names):
        pairs = [self.slots.get(name, (torch.zeros(4), torch.zeros(4))) for name in names]
        return torch.stack([h for h, _ in pairs]), torch.stack([c for _, c in pairs])

    def save(self, names, state):
        for name, h, c in zip(names, *state):
            self.slots[name] = (h, c)


cell, head = nn.LSTMCell(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
bank = Bank()
for step in range(3):
    state = cell(torch.randn(2, 3), bank.load([0, 1]))
    loss = head(state[0]).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    bank.save([0, 1], state)
"""


@pytest.mark.torch
def test_both_parts_of_a_state_that_a_loop_hands_out(tmp_path: pathlib.Path) -> None:
    """`zip(names, *state)` hands out a row of each part; the program then trains."""
    pytest.importorskip("torch")
    after = rewritten(tmp_path, "detach_what_is_stored", PAIRS)
    assert diff_lines(PAIRS, after) == [
        "-            self.slots[name] = (h, c)",
        "+            self.slots[name] = (h.detach(), c.detach())",
    ]
    with pytest.raises(RuntimeError, match="second time"):
        exec(PAIRS, {})
    exec(after, {})
