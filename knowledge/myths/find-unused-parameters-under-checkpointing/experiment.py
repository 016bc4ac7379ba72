"""`find_unused_parameters=True` with reentrant activation checkpointing in DDP, and its alternatives."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


class Model(nn.Module):
    def __init__(self, *, use_reentrant):
        super().__init__()
        self.encoder, self.block = nn.Linear(3, 4), nn.Linear(4, 4)
        self.use_reentrant = use_reentrant

    def forward(self, x):
        return checkpoint(self.block, self.encoder(x), use_reentrant=self.use_reentrant)


def train(*, use_reentrant, **options):
    torch.manual_seed(0)
    model = DistributedDataParallel(Model(use_reentrant=use_reentrant), **options)
    x = torch.randn(5, 3)
    for _ in range(2):
        model.zero_grad()
        try:
            model(x).pow(2).mean().backward()
        except RuntimeError as failure:
            return str(failure).partition(".")[0]
    return round(model.module.block.weight.grad.norm().item(), 4)


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
found = {
    "find_unused_parameters=True": train(use_reentrant=True, find_unused_parameters=True),
    "plain": train(use_reentrant=True),
    "static_graph=True": train(use_reentrant=True, static_graph=True),
    "use_reentrant=False": train(use_reentrant=False, find_unused_parameters=True),
}
dist.destroy_process_group()
for name, result in found.items():
    print(f"gradient norm of the block, {name}: {result}")

assert "ready only once" in str(found["find_unused_parameters=True"])
assert found["plain"] == found["static_graph=True"] == found["use_reentrant=False"] > 0
