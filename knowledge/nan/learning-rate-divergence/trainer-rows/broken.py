"""A learning rate far too high for a least-squares fit: the loss of each row is larger, until it is not finite."""

import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.fit = nn.Linear(6, 1)

    def forward(self, x, labels):
        return {"loss": nn.functional.mse_loss(self.fit(x).squeeze(-1), labels)}


torch.manual_seed(0)
inputs = torch.randn(64, 6)
rows = [{"x": x, "labels": x.sum() + 1.0} for x in inputs]
with tempfile.TemporaryDirectory() as folder:
    options = {"max_steps": 10, "logging_steps": 1, "save_strategy": "no", "report_to": [], "use_cpu": True}
    options.update(learning_rate=200.0, max_grad_norm=0.0, optim="sgd", disable_tqdm=True)
    Trainer(model=Regressor(), args=TrainingArguments(folder, **options), train_dataset=rows).train()
