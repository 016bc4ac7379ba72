# device/mixed-devices
# mended: self.register_buffer("kept", torch.cumprod(1.0 - betas, dim=0))
import torch
from torch import nn


def curve(steps):
    f = torch.cos(torch.linspace(0, 1, steps + 1) * 1.5) ** 2
    return (1 - f[1:] / f[:-1]).clamp(max=0.99)


class Schedule(nn.Module):
    def __init__(self, steps):
        super().__init__()
        betas = curve(steps)
        self.register_buffer("betas", betas)
        self.kept = torch.cumprod(1.0 - betas, dim=0)

    def weight(self, t):
        return (self.kept[t] / (1.01 - self.kept[t])).clamp(max=5)

    def noisy(self, x, noise, t):
        kept = self.kept[t].unsqueeze(-1)
        return kept.sqrt() * x + (1 - kept).sqrt() * noise


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.schedule = Schedule(20)
        self.net = nn.Sequential(nn.Linear(3, 32), nn.SiLU(), nn.Linear(32, 2))

    def loss(self, x, noise, t):
        guess = self.net(torch.cat([self.schedule.noisy(x, noise, t), t.unsqueeze(1) / 20], 1))
        return (self.schedule.weight(t) * (guess - noise).square().mean(1)).mean()


torch.manual_seed(0)
model = Denoiser().to("cuda")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(6):
    x, noise = torch.randn(16, 2, device="cuda"), torch.randn(16, 2, device="cuda")
    loss = model.loss(x, noise, torch.randint(0, 20, (16,), device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
