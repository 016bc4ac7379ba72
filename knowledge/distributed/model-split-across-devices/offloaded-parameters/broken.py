"""A model whose last layer was offloaded to disk is wrapped in DistributedDataParallel."""

from tempfile import mkdtemp

import torch
import torch.distributed as dist
from accelerate import dispatch_model
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(0)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
model = dispatch_model(model, {"0": "cpu", "1": "cpu", "2": "disk"}, offload_dir=mkdtemp(), main_device="cpu")
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(4, 8)).square().mean().backward()
optimizer.step()
dist.destroy_process_group()
