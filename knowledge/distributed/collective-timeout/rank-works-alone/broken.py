"""Rank 0 evaluates alone between two steps, while rank 1 goes on to the next all-reduce."""

import time
from datetime import timedelta
from tempfile import mkdtemp

import torch
import torch.distributed as dist
from torch import multiprocessing, nn


def train(rank, store):
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2, timeout=timedelta(seconds=3))
    model = nn.Linear(8, 1)
    for _ in range(2):
        model(torch.randn(4, 8)).square().mean().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        if rank == 0:
            time.sleep(5)  # a long evaluation, a large upload
    dist.destroy_process_group()


if __name__ == "__main__":
    multiprocessing.spawn(train, (f"file://{mkdtemp()}/store",), 2)
