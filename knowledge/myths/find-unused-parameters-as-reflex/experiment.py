"""`find_unused_parameters=True` where a layer is left out of the forward by mistake."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Model(nn.Module):
    def __init__(self, *, forgets):
        super().__init__()
        self.encoder, self.middle, self.head = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 1)
        self.forgets = forgets

    def forward(self, x):
        x = torch.tanh(self.encoder(x))
        return self.head(x if self.forgets else torch.tanh(self.middle(x)))


def train(*, forgets, find):
    torch.manual_seed(0)
    model = DistributedDataParallel(Model(forgets=forgets), find_unused_parameters=find)
    error = "none"
    for _ in range(2):
        try:
            model(torch.randn(5, 3)).pow(2).mean().backward()
        except RuntimeError as failure:
            error = str(failure).partition(".")[0]
    gradient = model.module.middle.weight.grad
    return error, None if gradient is None else round(gradient.norm().item(), 4)


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
plain, _ = train(forgets=True, find=False)
silent, remedy = train(forgets=True, find=True)
_, meant = train(forgets=False, find=False)
dist.destroy_process_group()
print("error:", plain)
print("error, find_unused_parameters=True:", silent)
print("gradient norm of the forgotten layer, find_unused_parameters=True:", remedy)
print("gradient norm of that layer, called in the forward:", meant)

assert plain.startswith("Expected to have finished reduction")
assert silent == "none" and remedy is None and meant > 0
