"""DDP's `static_graph=True` on a model whose used parameters change from step to step."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.heads = nn.Linear(3, 4), nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])

    def forward(self, x, task):
        return self.heads[task](self.encoder(x))


def train(**options):
    torch.manual_seed(0)
    model, results = DistributedDataParallel(Model(), **options), []
    for task in (0, 0, 1, 0):
        model.zero_grad()
        try:
            model(torch.randn(5, 3), task).pow(2).mean().backward()
            gradient = model.module.heads[task].weight.grad
            results.append(None if gradient is None else round(gradient.norm().item(), 4))
        except RuntimeError as failure:
            results.append(str(failure).partition(",")[0])
            break
    return results


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
static, searched = train(static_graph=True), train(find_unused_parameters=True)
dist.destroy_process_group()
print("gradient norm of the head in use, static_graph=True:", static)
print("gradient norm of the head in use, find_unused_parameters=True:", searched)

assert all(isinstance(norm, float) and norm > 0 for norm in searched)
assert static[:2] == searched[:2] and static[2:] == ["Your training graph has changed in this iteration"]
