"""Rank 1 grows beyond the memory it may use, and the system kills it; the launcher reports the rest."""

import os
import signal
from tempfile import mkdtemp

import torch
import torch.distributed as dist
from torch import multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel

MEMORY_LIMIT = 100_000


def train(rank, store):
    torch.manual_seed(rank)
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    model = DistributedDataParallel(nn.Linear(8, 1))
    batch = torch.randn(200, 8)
    if rank == 1 and batch.nbytes > MEMORY_LIMIT:
        os.kill(os.getpid(), signal.SIGKILL)  # as the kernel's out-of-memory killer does
    model(batch).square().mean().backward()


if __name__ == "__main__":
    multiprocessing.spawn(train, (f"file://{mkdtemp()}/store",), 2)
