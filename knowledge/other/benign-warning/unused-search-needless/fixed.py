"""DDP searches for unused parameters, finds none and warns; its gradients are right."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(0)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
x = torch.randn(4, 8)
wanted = torch.autograd.grad(net(x).square().mean(), list(net.parameters()))

model = DistributedDataParallel(net)
model(x).square().mean().backward()
assert all(torch.equal(parameter.grad, grad) for parameter, grad in zip(net.parameters(), wanted, strict=True))
dist.destroy_process_group()
