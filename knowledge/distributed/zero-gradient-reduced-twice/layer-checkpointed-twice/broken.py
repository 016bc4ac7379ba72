"""One block is applied twice, each time in a checkpoint of its own, under DeepSpeed ZeRO-2."""

import os

os.environ.update(DS_ACCELERATOR="cpu", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="29512")
import deepspeed
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, 8)
        self.block = nn.Linear(8, 8)

    def forward(self, x):
        h = self.embed(x)
        return checkpoint(self.block, checkpoint(self.block, h, use_reentrant=True), use_reentrant=True)


model = Net()
config = {"train_batch_size": 4, "zero_optimization": {"stage": 2}, "zero_allow_untested_optimizer": True}
engine, *_ = deepspeed.initialize(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), config=config)
engine.backward(engine(torch.randn(4, 8)).square().mean())
engine.step()
