"""A layer works on a mask that no replay writes again."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "cloned already": (
        """\"\"\"Thirty-two layers write one attention mask, and reentrant checkpointing replays the last write.\"\"\"

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attention, self.mlp = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, mask):
        mask = mask.clone()
        mask[..., : x.shape[1] // 8] = 0.0
        scores = self.attention(x) @ x.transpose(1, 2) / x.shape[-1] ** 0.5 + mask[:, 0]
        return x + self.mlp(scores.softmax(-1) @ x)


torch.manual_seed(0)
tokens = torch.randint(50, (1, 512))
embed, head = nn.Embedding(50, 8), nn.Linear(8, 50)
layers = nn.ModuleList(Layer(8) for _ in range(32))
mask = torch.full((1, 1, 512, 512), -1e4).triu(1)
mask[:, :, 0] = 0.0
x = embed(tokens)
for layer in layers:
    x = checkpoint(layer, x, mask, use_reentrant=True)
loss = nn.functional.cross_entropy(head(x)[0, :-1], tokens[0, 1:])
loss.backward()
""",
        "loss.backward()",
    ),
    "out of place": (
        """\"\"\"Thirty-two layers write one attention mask, and reentrant checkpointing replays the last write.\"\"\"

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attention, self.mlp = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, mask):
        mask = mask * 0.5
        scores = self.attention(x) @ x.transpose(1, 2) / x.shape[-1] ** 0.5 + mask[:, 0]
        return x + self.mlp(scores.softmax(-1) @ x)


torch.manual_seed(0)
tokens = torch.randint(50, (1, 512))
embed, head = nn.Embedding(50, 8), nn.Linear(8, 50)
layers = nn.ModuleList(Layer(8) for _ in range(32))
mask = torch.full((1, 1, 512, 512), -1e4).triu(1)
mask[:, :, 0] = 0.0
x = embed(tokens)
for layer in layers:
    x = checkpoint(layer, x, mask, use_reentrant=True)
loss = nn.functional.cross_entropy(head(x)[0, :-1], tokens[0, 1:])
loss.backward()
""",
        "loss.backward()",
    ),
    "a local mask": (
        """\"\"\"Thirty-two layers write one attention mask, and reentrant checkpointing replays the last write.\"\"\"

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attention, self.mlp = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, mask):
        own = torch.zeros(4)
        own[0] = 1.0
        scores = self.attention(x) @ x.transpose(1, 2) / x.shape[-1] ** 0.5 + mask[:, 0]
        return x + self.mlp(scores.softmax(-1) @ x)


torch.manual_seed(0)
tokens = torch.randint(50, (1, 512))
embed, head = nn.Embedding(50, 8), nn.Linear(8, 50)
layers = nn.ModuleList(Layer(8) for _ in range(32))
mask = torch.full((1, 1, 512, 512), -1e4).triu(1)
mask[:, :, 0] = 0.0
x = embed(tokens)
for layer in layers:
    x = checkpoint(layer, x, mask, use_reentrant=True)
loss = nn.functional.cross_entropy(head(x)[0, :-1], tokens[0, 1:])
loss.backward()
""",
        "loss.backward()",
    ),
}
WRONG = {
    "values set by every layer": (
        """\"\"\"Thirty-two layers write one attention mask, and reentrant checkpointing replays the last write.\"\"\"

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attention, self.mlp = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, mask):
        mask[..., : x.shape[1] // 8] = 0.0
        scores = self.attention(x) @ x.transpose(1, 2) / x.shape[-1] ** 0.5 + mask[:, 0]
        return x + self.mlp(scores.softmax(-1) @ x)


torch.manual_seed(0)
tokens = torch.randint(50, (1, 512))
embed, head = nn.Embedding(50, 8), nn.Linear(8, 50)
layers = nn.ModuleList(Layer(8) for _ in range(32))
mask = torch.full((1, 1, 512, 512), -1e4).triu(1)
mask[:, :, 0] = 0.0
x = embed(tokens)
for layer in layers:
    x = checkpoint(layer, x, mask, use_reentrant=True)
loss = nn.functional.cross_entropy(head(x)[0, :-1], tokens[0, 1:])
loss.backward()
""",
        "loss.backward()",
        ["+        mask = mask.clone()"],
    ),
    "values added up over the layers": (
        """\"\"\"Thirty-two layers write one attention mask, and reentrant checkpointing replays the last write.\"\"\"

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attention, self.mlp = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, mask):
        mask += self.slope
        scores = self.attention(x) @ x.transpose(1, 2) / x.shape[-1] ** 0.5 + mask[:, 0]
        return x + self.mlp(scores.softmax(-1) @ x)


torch.manual_seed(0)
tokens = torch.randint(50, (1, 512))
embed, head = nn.Embedding(50, 8), nn.Linear(8, 50)
layers = nn.ModuleList(Layer(8) for _ in range(32))
mask = torch.full((1, 1, 512, 512), -1e4).triu(1)
mask[:, :, 0] = 0.0
x = embed(tokens)
for layer in layers:
    x = checkpoint(layer, x, mask, use_reentrant=True)
loss = nn.functional.cross_entropy(head(x)[0, :-1], tokens[0, 1:])
loss.backward()
""",
        "loss.backward()",
        ["-        mask += self.slope", "+    mask = mask + layer.slope"],
    ),
    "added up in a nested module": (
        """import argparse
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class LocalAttention(nn.Module):
    def __init__(self, dim, heads, slope):
        super().__init__()
        self.heads = heads
        self.slope = slope
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x, bias, dist):
        b, t, d = x.shape
        bias.sub_(self.slope * dist)
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(x).chunk(3, dim=-1))
        att = torch.softmax(q @ k.transpose(-2, -1) * (d // self.heads) ** -0.5 + bias, dim=-1)
        return self.out((att @ v).transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, dim, heads, slope):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = LocalAttention(dim, heads, slope)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Linear(4 * dim, dim))

    def forward(self, x, bias, dist):
        x = x + self.attn(self.norm1(x), bias, dist)
        return x + self.ff(self.norm2(x))


class Encoder(nn.Module):
    \"\"\"Every layer looks more locally than the one under it.\"\"\"

    def __init__(self, vocab, dim=32, heads=4, depth=4, use_checkpoint=True):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(Layer(dim, heads, slope=0.15 * (i + 1)) for i in range(depth))
        self.head = nn.Linear(dim, vocab)
        self.use_checkpoint = use_checkpoint

    def forward(self, ids, pad):
        t = ids.size(1)
        pos = torch.arange(t)
        dist = (pos[None] - pos[:, None]).abs().float()
        bias = torch.zeros(ids.size(0), 1, t, t).masked_fill(pad[:, None, None], -1e4)
        x = self.embed(ids)
        for layer in self.layers:
            if self.use_checkpoint and self.training:
                x = checkpoint(layer, x, bias, dist, use_reentrant=True)
            else:
                x = layer(x, bias, dist)
        return self.head(x)


""",
        None,
        ["-        bias.sub_(self.slope * dist)", "+            bias = bias - layer.attn.slope * dist"],
    ),
    "added up with a name that the loop does not know": (
        """\"\"\"Thirty-two layers write one attention mask, and reentrant checkpointing replays the last write.\"\"\"

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attention, self.mlp = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, mask):
        scale = x.mean()
        mask += scale
        scores = self.attention(x) @ x.transpose(1, 2) / x.shape[-1] ** 0.5 + mask[:, 0]
        return x + self.mlp(scores.softmax(-1) @ x)


torch.manual_seed(0)
tokens = torch.randint(50, (1, 512))
embed, head = nn.Embedding(50, 8), nn.Linear(8, 50)
layers = nn.ModuleList(Layer(8) for _ in range(32))
mask = torch.full((1, 1, 512, 512), -1e4).triu(1)
mask[:, :, 0] = 0.0
x = embed(tokens)
for layer in layers:
    x = checkpoint(layer, x, mask, use_reentrant=True)
loss = nn.functional.cross_entropy(head(x)[0, :-1], tokens[0, 1:])
loss.backward()
""",
        "loss.backward()",
        [
            "-from torch.utils.checkpoint import checkpoint",
            "-    x = checkpoint(layer, x, mask, use_reentrant=True)",
            "+    x = layer(x, mask)",
        ],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "own_mask", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "own_mask", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "own_mask", after, still) == after
