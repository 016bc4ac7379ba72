"""Trains a litgpt model with its decoding step: one token, its position in the key/value cache, then the next position."""

import torch
import torch.nn.functional as F
from model import GPT, Config


def main():
    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(True)
    model = GPT(Config())
    model.set_kv_cache(batch_size=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(3):
        token, target = torch.randint(0, 64, (1, 1)), torch.randint(0, 64, (1,))
        input_pos = torch.tensor([0])
        logits = model(token, input_pos)
        input_pos.add_(1)
        loss = F.cross_entropy(logits[:, -1], target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
