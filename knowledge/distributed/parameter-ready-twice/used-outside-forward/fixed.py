"""A loss that needs a second output of the model, which DDP wraps."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(0)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.project = nn.Linear(8, 2)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        h = torch.relu(self.body(x))
        return self.head(h), self.project(h)


model = DistributedDataParallel(Net(), find_unused_parameters=True)
score, projected = model(torch.randn(4, 8))
(score.mean() + projected.square().mean()).backward()
dist.destroy_process_group()
