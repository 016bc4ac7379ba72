"""The embedding and the output layer share a weight, and each is sharded by fully_shard."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

torch.manual_seed(0)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

embed, head = nn.Embedding(16, 8), nn.Linear(8, 16, bias=False)
head.weight = embed.weight
model = nn.Sequential(embed, head)
fully_shard(embed)
fully_shard(head)
fully_shard(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
tokens = torch.randint(16, (4,))
nn.functional.cross_entropy(model(tokens), tokens).backward()
optimizer.step()
dist.destroy_process_group()
