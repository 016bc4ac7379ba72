# device/mixed-devices
# mended: self.register_buffer("mask", torch.tril(torch.ones(length, length)).bool())
import torch
from torch import nn


class Causal(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.mask = torch.tril(torch.ones(length, length)).bool()

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(1, 2) / x.size(-1) ** 0.5
        scores = scores.masked_fill(~self.mask, float("-inf"))
        return scores.softmax(dim=-1) @ self.value(x)


torch.manual_seed(0)
model = Causal(16, 6).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(8):
    x = torch.randn(4, 6, 16, device="cuda")
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
