"""fully_shard groups a bfloat16 body and a new head."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

torch.manual_seed(0)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

body = nn.Linear(8, 8, dtype=torch.bfloat16)
head = nn.Linear(8, 1)
model = fully_shard(nn.Sequential(body, nn.ReLU(), head))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(4, 8, dtype=torch.bfloat16)).square().mean().backward()
optimizer.step()
dist.destroy_process_group()
