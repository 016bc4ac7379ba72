"""A Fourier transform mixes the tokens of a model in bfloat16."""

import torch
from torch import nn


class Mixer(nn.Module):
    """Mixes tokens and features, then normalises."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 2)

    def forward(self, x):
        x = self.norm(x + torch.fft.fft2(x, dim=(-2, -1)).real)
        return self.head(x.mean(1))


torch.manual_seed(0)
model = Mixer(8).to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loss = model(torch.randn(4, 6, 8, dtype=torch.bfloat16)).float().pow(2).mean()
loss.backward()
optimizer.step()
