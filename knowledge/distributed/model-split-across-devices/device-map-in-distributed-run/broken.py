"""Two processes of one run; each loads a model with a device map and gives it to accelerate."""

import os
from tempfile import mkdtemp

import torch
from accelerate import Accelerator, dispatch_model
from torch import multiprocessing, nn


def train(rank, port):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    model = dispatch_model(model, {"0": "cpu", "1": "cpu", "2": "disk"}, offload_dir=mkdtemp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    accelerator.backward(model(torch.randn(4, 8)).square().mean())
    optimizer.step()
    accelerator.end_training()


if __name__ == "__main__":
    multiprocessing.spawn(train, ("29521",), 2)
