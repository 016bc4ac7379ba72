"""Compiled autograd meets DistributedDataParallel's C++ reducer."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(0)

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch._dynamo.config.compiled_autograd = False
model = DistributedDataParallel(nn.Linear(8, 2))


@torch.compile(backend="aot_eager")
def train_step(x):
    model(x).pow(2).mean().backward()


train_step(torch.randn(4, 8))
dist.destroy_process_group()
