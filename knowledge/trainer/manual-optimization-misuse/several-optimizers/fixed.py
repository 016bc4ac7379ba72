"""Two optimizers under automatic optimization, as Lightning 1 allowed it."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader


class Pair(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 1)

    def training_step(self, batch, index):
        loss = self.second(self.first(batch)).square().mean()
        for optimizer in self.optimizers():
            optimizer.zero_grad()
        self.manual_backward(loss)
        for optimizer in self.optimizers():
            optimizer.step()
        return loss

    def configure_optimizers(self):
        return [torch.optim.SGD(part.parameters(), lr=0.1) for part in (self.first, self.second)]


torch.manual_seed(0)
quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
L.Trainer(max_steps=2, accelerator="cpu", **quiet).fit(Pair(), DataLoader(torch.ones(4, 2)))
