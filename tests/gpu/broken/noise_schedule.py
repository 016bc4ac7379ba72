# device/mixed-devices
# mended: self.register_buffer("betas", torch.linspace(1e-4, 0.02, steps))
# mended: self.register_buffer("kept", torch.cumprod(1 - self.betas, 0))
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Denoiser(L.LightningModule):
    def __init__(self, steps=50):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(17, 64), nn.SiLU(), nn.Linear(64, 16))
        self.betas = torch.linspace(1e-4, 0.02, steps)
        self.kept = torch.cumprod(1 - self.betas, 0)

    def training_step(self, batch, index):
        (x,) = batch
        t = torch.randint(0, len(self.betas), (len(x),), device=self.device)
        noise = torch.randn_like(x)
        kept = self.kept[t].unsqueeze(1)
        noisy = kept.sqrt() * x + (1 - kept).sqrt() * noise
        told = self.net(torch.cat([noisy, t.unsqueeze(1) / 50], 1))
        loss = nn.functional.mse_loss(told, noise)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


if __name__ == "__main__":
    L.seed_everything(0)
    loader = DataLoader(TensorDataset(torch.randn(128, 16)), batch_size=32)
    trainer = L.Trainer(
        max_epochs=2, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False
    )
    trainer.fit(Denoiser(), loader)
