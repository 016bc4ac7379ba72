"""Lightning drives the loop. needs: lightning"""

import lightning
import torch


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))

    def training_step(self, batch, index):
        return (self.layers(batch) - batch.sum(1, keepdim=True)).square().mean()

    def validation_step(self, batch, index):
        self.log("loss", self.layers(batch).square().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


data = torch.utils.data.DataLoader(torch.randn(64, 4), batch_size=8)
trainer = lightning.Trainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
)
trainer.fit(Net(), data, data)
