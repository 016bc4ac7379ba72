"""Two ranks train on data of unequal length, then meet at a barrier."""

from datetime import timedelta
from tempfile import mkdtemp

import torch
import torch.distributed as dist
from torch import multiprocessing, nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel


def train(rank, store):
    torch.manual_seed(rank)
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2, timeout=timedelta(seconds=5))
    model = DistributedDataParallel(nn.Linear(8, 1))
    batches = torch.randn(7, 4, 8).tensor_split(2)[rank]
    with Join([model]):
        for batch in batches:
            model(batch).square().mean().backward()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    multiprocessing.spawn(train, (f"file://{mkdtemp()}/store",), 2)
