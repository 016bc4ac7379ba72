"""A model under DDP that takes one of two branches, as the batch demands."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(0)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.text = nn.Linear(8, 1)
        self.image = nn.Linear(8, 1)

    def forward(self, x, kind):
        return self.text(x) if kind == "text" else self.image(x)


model = DistributedDataParallel(Router(), find_unused_parameters=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for kind in ("text", "image"):
    model(torch.randn(4, 8), kind).square().mean().backward()
optimizer.step()
dist.destroy_process_group()
