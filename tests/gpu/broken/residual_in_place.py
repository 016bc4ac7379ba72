# inplace/op-on-saved-tensor
# mended: h = h + self.second(h)
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        h = torch.sigmoid(self.first(x))
        h += self.second(h)
        return h


torch.manual_seed(0)
model = Block().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
for step in range(8):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(torch.randn(4, 16, device="cuda")).float().square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
