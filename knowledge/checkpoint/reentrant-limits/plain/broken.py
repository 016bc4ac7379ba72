"""A gradient penalty asks autograd.grad for a gradient through a segment with reentrant checkpointing."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

samples = torch.randn(6, 4, requires_grad=True)
score = checkpoint(critic, samples, use_reentrant=True)
(slope,) = torch.autograd.grad(score.sum(), samples, create_graph=True)
loss = score.mean() + (slope.norm(dim=1) - 1).pow(2).mean()
loss.backward()
