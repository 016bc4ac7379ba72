# inplace/shared-mask-under-checkpointing inplace/op-on-saved-tensor
# mended: mask = mask * (0.5)
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(16, 16)

    def forward(self, x, mask):
        mask *= 0.5
        return torch.tanh(self.project(x)) * mask


torch.manual_seed(0)
layers = nn.ModuleList(Layer() for _ in range(3)).cuda()
optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-3)
for step in range(6):
    x = torch.randn(4, 16, device="cuda", requires_grad=True)
    mask = torch.ones(4, 16, device="cuda")
    for layer in layers:
        x = checkpoint(layer, x, mask, use_reentrant=False)
    optimizer.zero_grad()
    x.square().mean().backward()
    optimizer.step()
