"""Manual optimization is on, and the Trainer is asked to clip gradients for it."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(2, 1)
        self.automatic_optimization = False

    def training_step(self, batch, index):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(self.line(batch).square().mean())
        self.clip_gradients(optimizer, gradient_clip_val=1.0)
        optimizer.step()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


torch.manual_seed(0)
quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
L.Trainer(max_steps=1, accelerator="cpu", **quiet).fit(Model(), DataLoader(torch.ones(4, 2)))
