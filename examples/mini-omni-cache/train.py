"""Training steps that decode with a key/value cache: index_copy_ at a position that the loop moves in place."""

import torch
import torch.nn.functional as F
from torch import nn

DIM, HEADS, VOCAB, SLOTS = 32, 4, 64, 16


class KVCache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.zeros(1, HEADS, SLOTS, DIM // HEADS), persistent=False)
        self.register_buffer("v", torch.zeros(1, HEADS, SLOTS, DIM // HEADS), persistent=False)

    def forward(self, input_pos, k, v):
        return self.k.index_copy_(2, input_pos, k), self.v.index_copy_(2, input_pos, v)


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.qkv = nn.Embedding(VOCAB, DIM), nn.Linear(DIM, 3 * DIM)
        self.proj, self.lm_head = nn.Linear(DIM, DIM), nn.Linear(DIM, VOCAB)
        self.kv_cache = KVCache()

    def forward(self, idx, input_pos=None):
        x = self.wte(idx)
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        if input_pos is not None:
            k, v = self.kv_cache(input_pos, k, v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=input_pos is None)
        return self.lm_head(x + self.proj(y.transpose(1, 2).flatten(2)))


def main():
    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(True)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    input_pos = torch.tensor([0])
    for step in range(3):
        token, target = torch.randint(0, VOCAB, (1, 1)), torch.randint(0, VOCAB, (1,))
        logits = model(token, input_pos)
        loss = F.cross_entropy(logits[:, -1], target)
        input_pos.add_(1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
