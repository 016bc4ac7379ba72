"""A penalty on the weights beside the model's own loss, with the model sharded by fully_shard."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

torch.manual_seed(0)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


model, direction = fully_shard(Net()), torch.randn(8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
overlap = model.head.weight @ direction
score = model(torch.randn(4, 8))
(score.square().mean() + overlap.square().sum()).backward()
optimizer.step()
dist.destroy_process_group()
