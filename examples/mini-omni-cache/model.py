"""A small GPT as litgpt writes it: rotary positions, a key/value cache for decoding that `input_pos` switches on."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    block_size: int = 16
    padded_vocab_size: int = 64
    n_layer: int = 2
    n_head: int = 4
    n_embd: int = 32

    @property
    def head_size(self):
        return self.n_embd // self.n_head


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.lm_head = nn.Linear(config.n_embd, config.padded_vocab_size, bias=False)
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(config.padded_vocab_size, config.n_embd),
                h=nn.ModuleList(Block(config) for _ in range(config.n_layer)),
                ln_f=nn.LayerNorm(config.n_embd),
            )
        )
        cos, sin = build_rope_cache(config.block_size, config.head_size)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.mask_cache = None

    def forward(self, idx, input_pos=None):
        if input_pos is not None:  # use the kv cache
            cos = self.cos.index_select(0, input_pos)
            sin = self.sin.index_select(0, input_pos)
            if self.mask_cache is None:
                raise TypeError("You need to call `gpt.set_kv_cache()`")
            mask = self.mask_cache.index_select(2, input_pos)
        else:
            cos, sin, mask = self.cos[: idx.size(1)], self.sin[: idx.size(1)], None
        x = self.transformer.wte(idx)
        for block in self.transformer.h:
            x = block(x, cos, sin, mask, input_pos)
        return self.lm_head(self.transformer.ln_f(x))

    def set_kv_cache(self, batch_size):
        for block in self.transformer.h:
            block.attn.kv_cache = KVCache(batch_size, self.config)
        size = self.config.block_size
        self.mask_cache = torch.ones(size, size, dtype=torch.bool).tril()[None, None]


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norm_1 = nn.LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.norm_2 = nn.LayerNorm(config.n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(config.n_embd, 4 * config.n_embd), nn.GELU(), nn.Linear(4 * config.n_embd, config.n_embd)
        )

    def forward(self, x, cos, sin, mask=None, input_pos=None):
        x = x + self.attn(self.norm_1(x), cos, sin, mask, input_pos)
        return x + self.mlp(self.norm_2(x))


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.proj = nn.Linear(config.n_embd, config.n_embd)
        self.kv_cache = None

    def forward(self, x, cos, sin, mask=None, input_pos=None):
        shape = (self.config.n_head, self.config.head_size)
        q, k, v = (part.unflatten(-1, shape).transpose(1, 2) for part in self.attn(x).chunk(3, dim=-1))
        q, k = apply_rope(q, cos, sin), apply_rope(k, cos, sin)
        if input_pos is not None:
            if not isinstance(self.kv_cache, KVCache):
                raise TypeError("You need to call `gpt.set_kv_cache()`")
            k, v = self.kv_cache(input_pos, k, v)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        return self.proj(y.transpose(1, 2).flatten(2))


class KVCache(nn.Module):
    def __init__(self, batch_size, config):
        super().__init__()
        shape = (batch_size, config.n_head, config.block_size, config.head_size)
        self.register_buffer("k", torch.zeros(shape), persistent=False)
        self.register_buffer("v", torch.zeros(shape), persistent=False)

    def forward(self, input_pos, k, v):
        k = self.k.index_copy_(2, input_pos, k)
        v = self.v.index_copy_(2, input_pos, v)
        return k, v


def build_rope_cache(seq_len, n_elem, base=10000):
    theta = 1.0 / (base ** (torch.arange(0, n_elem, 2).float() / n_elem))
    idx_theta = torch.outer(torch.arange(seq_len), theta).repeat(1, 2)
    return idx_theta.cos(), idx_theta.sin()


def apply_rope(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin
