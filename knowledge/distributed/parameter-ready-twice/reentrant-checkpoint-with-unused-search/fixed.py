"""Activation checkpointing under DDP, which is told how to treat unused parameters."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, 8)
        self.block = nn.Linear(8, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(checkpoint(self.block, self.embed(x), use_reentrant=False))


model = DistributedDataParallel(Net(), find_unused_parameters=True)
for _ in range(2):
    model(torch.randn(4, 8)).square().mean().backward()
dist.destroy_process_group()
