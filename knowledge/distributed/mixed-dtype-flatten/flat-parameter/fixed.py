"""FSDP wraps a bfloat16 body and a new head as one unit."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

torch.manual_seed(0)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

body = nn.Linear(8, 8, dtype=torch.bfloat16)
head = nn.Linear(8, 1, dtype=torch.bfloat16)
model = FullyShardedDataParallel(nn.Sequential(body, nn.ReLU(), head), device_id=torch.device("cpu"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(4, 8, dtype=torch.bfloat16)).square().mean().backward()
optimizer.step()
dist.destroy_process_group()
