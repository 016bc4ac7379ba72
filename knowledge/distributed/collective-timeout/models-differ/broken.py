"""Each rank counts the labels in its own share of the data and builds its model from that."""

from tempfile import mkdtemp

import torch
import torch.distributed as dist
from torch import multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel


def train(rank, store):
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    labels = torch.tensor([[0, 1, 2, 2], [0, 1, 1, 3]])[rank]
    classes = labels.max() + 1
    model = DistributedDataParallel(nn.Linear(8, int(classes)))
    nn.functional.cross_entropy(model(torch.randn(4, 8)), labels).backward()


if __name__ == "__main__":
    multiprocessing.spawn(train, (f"file://{mkdtemp()}/store",), 2)
