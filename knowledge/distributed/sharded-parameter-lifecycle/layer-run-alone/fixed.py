"""Each layer and the whole model are sharded by fully_shard; one layer is probed before training."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

torch.manual_seed(0)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
for layer in (model[0], model[2]):
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

x = torch.randn(4, 8)
outputs = []
model[0].register_forward_hook(lambda module, args, output: outputs.append(output.detach()))
(model(x) / outputs[0].std()).square().mean().backward()
optimizer.step()
dist.destroy_process_group()
