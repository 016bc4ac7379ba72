# device/mixed-devices no-graph/empty-parameter-list
# mended: self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(depth))
import torch
from torch import nn


class Tower(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.stem = nn.Linear(10, width)
        self.blocks = [nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(depth)]
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x).squeeze(-1)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    net = Tower(32, 3).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for step in range(8):
        x = torch.randn(32, 10, device=device)
        loss = nn.functional.mse_loss(net(x), x.norm(dim=1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


main()
