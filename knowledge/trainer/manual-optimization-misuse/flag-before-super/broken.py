"""The flag of manual optimization is set before `super().__init__()`, which sets it back."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Pair(L.LightningModule):
    def __init__(self):
        self.automatic_optimization = False
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 1)

    def training_step(self, batch, index):
        (x,) = batch
        for optimizer in self.optimizers():
            optimizer.zero_grad()
        self.manual_backward(self.second(self.first(x)).square().mean())
        for optimizer in self.optimizers():
            optimizer.step()

    def configure_optimizers(self):
        return [torch.optim.SGD(one.parameters(), lr=0.1) for one in (self.first, self.second)]


quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer = L.Trainer(max_epochs=1, accelerator="cpu", **quiet)
trainer.fit(Pair(), DataLoader(TensorDataset(torch.randn(16, 4)), batch_size=8))
