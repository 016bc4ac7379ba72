import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Force(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1, bias=False))

    def forward(self, position):
        energy = self.net(position).sum()
        (gradient,) = torch.autograd.grad(energy, position, create_graph=True)
        return -gradient


torch.manual_seed(0)
model = Force()
position = torch.randn(4, 3, requires_grad=True)
force = checkpoint(model, position, use_reentrant=False)
loss = force.square().mean()
loss.backward()
