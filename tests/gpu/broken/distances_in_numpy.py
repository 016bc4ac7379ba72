# backward/custom-function-contract backward/gradient-shape-mismatch
# mended: return torch.from_numpy(np.sign(self_minus_median) * scale).to(grad.device)
import numpy as np
import torch
from torch import nn


class MedianDeviation(torch.autograd.Function):
    """The mean distance of each row's values from their median."""

    @staticmethod
    def forward(ctx, prices):
        rows = prices.detach().cpu().numpy()
        ctx.rows = rows - np.median(rows, axis=1, keepdims=True)
        deviation = np.abs(ctx.rows).mean(1)
        return torch.from_numpy(deviation).to(device=prices.device)

    @staticmethod
    def backward(ctx, grad):
        self_minus_median = ctx.rows
        scale = grad.cpu().numpy()[:, None] / self_minus_median.shape[1]
        return torch.from_numpy(np.sign(self_minus_median) * scale)


torch.manual_seed(0)
forecaster = nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 7)).cuda()
optimizer = torch.optim.RMSprop(forecaster.parameters(), lr=1e-3)
for day in range(8):
    market = torch.randn(32, 10, device="cuda")
    prices = forecaster(market)
    loss = (prices - market[:, :7]).square().mean() + 0.1 * MedianDeviation.apply(prices).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
