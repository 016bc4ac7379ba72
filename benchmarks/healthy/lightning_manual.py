"""Lightning with manual optimization of two networks. needs: lightning"""

import lightning
import torch


class Gan(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = torch.nn.Linear(2, 4)
        self.critic = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        first, second = self.optimizers()
        loss = torch.nn.functional.softplus(-self.critic(self.generator(torch.randn(8, 2)))).mean()
        first.zero_grad()
        self.manual_backward(loss)
        first.step()
        fake = self.generator(torch.randn(8, 2)).detach()
        loss = (
            torch.nn.functional.softplus(self.critic(fake)).mean()
            + torch.nn.functional.softplus(-self.critic(batch)).mean()
        )
        second.zero_grad()
        self.manual_backward(loss)
        second.step()

    def configure_optimizers(self):
        return torch.optim.Adam(self.generator.parameters()), torch.optim.Adam(self.critic.parameters())


data = torch.utils.data.DataLoader(torch.randn(64, 4), batch_size=8)
lightning.Trainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
).fit(Gan(), data)
