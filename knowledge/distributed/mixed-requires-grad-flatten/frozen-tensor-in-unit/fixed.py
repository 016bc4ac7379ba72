"""One weight of a layer is frozen, and the layer is an FSDP unit of its own."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

torch.manual_seed(0)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
model[0].weight.requires_grad_(False)
policy = ModuleWrapPolicy({nn.Linear})
cpu = torch.device("cpu")
model = FullyShardedDataParallel(model, auto_wrap_policy=policy, device_id=cpu, use_orig_params=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(4, 8)).square().mean().backward()
optimizer.step()
dist.destroy_process_group()
