"""Each rank stops by the score of its own part of the data, and the others wait for it in the next round."""

from datetime import timedelta
from tempfile import mkdtemp

import torch
import torch.distributed as dist
from torch import multiprocessing, nn


class Stopping:
    def __init__(self, patience):
        self.patience, self.best, self.worse = patience, float("inf"), 0

    def update(self, score):
        self.worse = 0 if score < self.best else self.worse + 1
        self.best = min(self.best, score)
        return self.worse >= self.patience


def train(rank, store):
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2, timeout=timedelta(seconds=5))
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    stopping = Stopping(patience=2)
    held_out, drift = torch.randn(16, 8), float(rank)  # the other rank's part gets harder
    for epoch in range(6):
        loss = (model(torch.randn(4, 8)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            score = (model.module(held_out) - 1).square().mean().item() + drift * epoch
        stop = torch.tensor(float(bool(stopping.update(score))))
        dist.all_reduce(stop, op=dist.ReduceOp.MAX)
        if stop > 0:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    multiprocessing.spawn(train, (f"file://{mkdtemp()}/store",), 2)
