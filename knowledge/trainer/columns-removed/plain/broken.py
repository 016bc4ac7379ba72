"""The model's forward takes `features`; the dataset calls its columns otherwise, and the Trainer drops them all."""

import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(2, 1)

    def forward(self, features, labels=None):
        return {"loss": (self.line(features).squeeze(-1) - labels).square().mean()}


torch.manual_seed(0)
rows = [{"x": torch.ones(2), "y": torch.tensor(1.0)}] * 8
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, max_steps=1, report_to="none", use_cpu=True, disable_tqdm=True)
    Trainer(model=Regressor(), args=arguments, train_dataset=rows).train()
