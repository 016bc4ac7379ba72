"""A loss on two forwards of one checkpointed model under DeepSpeed ZeRO-2."""

import os

os.environ.update(DS_ACCELERATOR="cpu", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
import deepspeed
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, 8)
        self.block = nn.Linear(8, 1)

    def forward(self, x):
        return checkpoint(self.block, self.embed(x), use_reentrant=False)


model, chosen, rejected = Net(), torch.randn(4, 8), torch.randn(4, 8)
config = {"train_batch_size": 4, "zero_optimization": {"stage": 2}, "zero_allow_untested_optimizer": True}
engine, *_ = deepspeed.initialize(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), config=config)
engine.backward(-nn.functional.logsigmoid(engine(chosen) - engine(rejected)).mean())
engine.step()
