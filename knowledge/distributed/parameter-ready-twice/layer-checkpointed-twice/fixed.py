"""One block is applied twice, each time in a checkpoint of its own, under DDP."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, 8)
        self.block = nn.Linear(8, 8)

    def forward(self, x):
        h = self.embed(x)
        for _ in range(2):
            h = checkpoint(self.block, h, use_reentrant=False)
        return h


model = DistributedDataParallel(Shared())
for _ in range(2):
    model(torch.randn(4, 8)).square().mean().backward()
dist.destroy_process_group()
