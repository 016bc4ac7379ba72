"""Two ranks with finite gradients above 65504 reduce them in float16, and every rank gets inf. Rank 0 prints its rows."""

import tempfile
import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks


def train(rank, store):
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    nn.init.zeros_(model.module.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-10)
    for _ in range(3):
        counts, target = 50000.0 * torch.rand(8, 4), 4.0 * torch.rand(8, 1)
        loss = nn.functional.mse_loss(model(counts), target)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1e9)
        optimizer.step()
        if rank == 0:
            print({"loss": loss.item(), "grad_norm": norm.item()}, flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train, (f"{folder}/store",), nprocs=2)
