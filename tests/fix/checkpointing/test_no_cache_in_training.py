"""Training runs without the cache of decoding."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context
from explainer.fix.codemods.checkpointing.no_cache_in_training import propose
from explainer.model.incident import ExceptionRecord, Incident
from explainer.source.program import read_program
from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "no cache": (
        """from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained('m')
loss = model(input_ids=x, labels=x, use_cache=False).loss
loss.backward()
""",
        "loss.backward",
    ),
    "a cache in generation": (
        """import torch
from transformers import StaticCache
cache = StaticCache(config=c)
with torch.no_grad():
    out = model(input_ids=x, past_key_values=cache)
loss = model(input_ids=x, labels=x).loss
loss.backward()
""",
        "loss.backward",
    ),
    "an argument that guards no write": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class A(nn.Module):
    def forward(self, x, mask=None):
        if mask is not None:
            x = x * mask
        return x
net = A()
loss = net(x, m).sum()
loss.backward()
""",
        "loss.backward",
    ),
    "a parameter that is handed on and guards no write": (
        """from torch import nn
class A(nn.Module):
    def forward(self, x, pos=None):
        if pos is not None:
            x = x + self.table[pos]
        return x
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(A() for _ in range(2))
    def forward(self, x, pos=None):
        for layer in self.layers:
            x = layer(x, pos)
        return x
net = Net()
loss = net(x, p).sum()
loss.backward()
""",
        "loss.backward",
    ),
}
STACKED = """from torch import nn
class Cache(nn.Module):
    def forward(self, at, k):
        return self.k.index_copy_(1, at, k)
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.kv_cache = None
    def forward(self, x, pos=None):
        if pos is not None:
            x = self.kv_cache(at=pos, k=x)
        return x
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Attention() for _ in range(2))
    def fill(self):
        for layer in self.layers:
            layer.kv_cache = Cache()
    def forward(self, x, pos=None):
        for layer in self.layers:
            x = layer(x, pos)
        return x
net = Net()
"""
WRONG = {
    "a position handed down to caches set from outside": (
        STACKED.replace("def forward(self, at, k)", "def forward(self, pos, k)")
        .replace("(1, at, k)", "(1, pos, k)")
        .replace("at=pos", "pos=pos")
        + """loss = net(x, p).sum()
loss.backward()
""",
        "loss.backward",
        ["-loss = net(x, p).sum()", "+loss = net(x, pos=None).sum()"],
    ),
    "a position in an own cache": (
        """\"\"\"A decode loop trains through its key/value cache and moves the position counter in place.\"\"\"

import torch
from torch import nn


class CachedAttention(nn.Module):
    def __init__(self, dim=8, heads=2, slots=16):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), heads
        self.register_buffer("k_cache", torch.zeros(1, heads, slots, dim // heads))
        self.register_buffer("v_cache", torch.zeros(1, heads, slots, dim // heads))

    def forward(self, x, input_pos=None):
        q, k, v = (z.unflatten(-1, (self.heads, -1)).transpose(1, 2) for z in self.qkv(x).chunk(3, -1))
        if input_pos is not None:
            k = self.k_cache.index_copy_(2, input_pos, k)
            v = self.v_cache.index_copy_(2, input_pos, v)
        return self.out(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


torch.manual_seed(0)
embed, attention, head = nn.Embedding(10, 8), CachedAttention(), nn.Linear(8, 10)
token, target, input_pos = torch.tensor([[3]]), torch.tensor([7]), torch.tensor([0])
logits = head(attention(embed(token), input_pos))
input_pos.add_(1)
loss = nn.functional.cross_entropy(logits.flatten(0, 1), target)
loss.backward()
""",
        "loss.backward()",
        [
            "-logits = head(attention(embed(token), input_pos))",
            "+logits = head(attention(embed(token), input_pos=None))",
        ],
    ),
    "a cache of transformers": (
        """\"\"\"Two chunks of one text run through a StaticCache, whose slots the second forward overwrites.\"\"\"

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM, StaticCache

torch.manual_seed(0)
torch.autograd.set_detect_anomaly(True)
config = Qwen2Config(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
)
model = Qwen2ForCausalLM(config).train()
cache = StaticCache(config=config, max_cache_len=16)
loss = 0.0
for chunk in torch.randint(64, (1, 8)).split(4, dim=1):
    loss = loss + model(input_ids=chunk, labels=chunk, past_key_values=cache, use_cache=True).loss
loss.backward()
""",
        "loss.backward()",
        [
            "-from transformers import Qwen2Config, Qwen2ForCausalLM, StaticCache",
            "+from transformers import Qwen2Config, Qwen2ForCausalLM",
            "-cache = StaticCache(config=config, max_cache_len=16)",
            "-    loss = loss + model(input_ids=chunk, labels=chunk, past_key_values=cache, use_cache=True).loss",
            "+    loss = loss + model(input_ids=chunk, labels=chunk, use_cache=False).loss",
        ],
    ),
    "a keyword argument": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class A(nn.Module):
    def forward(self, x, pos=None):
        if pos is not None:
            self.cache[pos] = x
        return x
net = A()
loss = net(x, pos=p).sum()
loss.backward()
""",
        "loss.backward",
        ["-loss = net(x, pos=p).sum()", "+loss = net(x, pos=None).sum()"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "no_cache_in_training", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "no_cache_in_training", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "no_cache_in_training", after, still) == after


FED = {
    "one call a step": ("for x in data:\n    loss = net(x, p).sum()\n    loss.backward()\n", None),
    "pieces of one text": ("loss = 0\nfor x in data:\n    loss = loss + net(x, p).sum()\nloss.backward()\n", "unsafe"),
}


@pytest.mark.parametrize(("loop", "applicability"), FED.values(), ids=FED)
def test_pieces_lose_their_context(loop: str, applicability: str | None, tmp_path: pathlib.Path) -> None:
    """Where several calls make one loss, the cache carries what the earlier ones saw: the edit is then not safe."""
    source = STACKED.replace("def forward(self, at, k)", "def forward(self, pos, k)").replace(
        "(1, at, k)", "(1, pos, k)"
    )
    (tmp_path / "train.py").write_text(source.replace("at=pos", "pos=pos") + loop)
    failed = Incident(exceptions=(ExceptionRecord(type="RuntimeError"),))
    program = read_program(str(tmp_path), [str(tmp_path / "train.py")])
    (proposal,) = propose(Context(program=program, incident=failed))
    assert proposal.applicability == applicability
