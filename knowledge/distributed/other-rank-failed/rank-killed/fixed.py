"""Rank 1 takes more memory than it may, and the system kills it; the launcher reports the rest."""

import os
import signal
from tempfile import mkdtemp

import torch
import torch.distributed as dist
from torch import multiprocessing, nn


def train(rank, store):
    torch.manual_seed(rank)
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    model, batch = nn.Linear(8, 1), torch.randn(200, 8)
    if rank == 1 and batch.nbytes > 100_000:
        os.kill(os.getpid(), signal.SIGKILL)  # as the kernel's out-of-memory killer does
    model(batch).square().mean().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    dist.destroy_process_group()


if __name__ == "__main__":
    multiprocessing.spawn(train, (f"file://{mkdtemp()}/store",), 2)
