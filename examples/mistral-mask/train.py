"""A decoder whose layers each unmask the padding in the one attention mask that they share, under checkpointing."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

LAYERS, DIM, VOCAB, LENGTH = 32, 16, 64, 512


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, DIM)

    def forward(self, hidden_states, attention_mask):
        query, key, value = self.qkv(self.norm(hidden_states)).chunk(3, dim=-1)
        attention_mask[:, :, :, 0] = 0.0  # the first token is a sink that every query may see
        scores = query @ key.transpose(-1, -2) / DIM**0.5 + attention_mask[:, 0]
        return hidden_states + self.out(scores.softmax(-1) @ value)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList(DecoderLayer() for _ in range(LAYERS))
        self.lm_head = nn.Linear(DIM, VOCAB)

    def forward(self, input_ids, padding):
        length = input_ids.shape[1]
        attention_mask = torch.full((1, 1, length, length), torch.finfo(torch.float32).min).triu(1)
        attention_mask[:, :, :, : padding] = 0.0  # left padding: no row may be fully masked
        hidden_states = self.embed_tokens(input_ids)
        for layer in self.layers:
            hidden_states = checkpoint(layer, hidden_states, attention_mask, use_reentrant=True)
        return self.lm_head(hidden_states)


def main():
    torch.manual_seed(0)
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(3):
        input_ids = torch.randint(0, VOCAB, (1, LENGTH))
        logits = model(input_ids, padding=4)
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), input_ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
