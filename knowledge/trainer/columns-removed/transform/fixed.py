"""A row is made when it is read, from a column that the model's forward does not name: the Trainer has dropped it by then."""

import tempfile

import torch
from datasets import Dataset
from torch import nn
from transformers import Trainer, TrainingArguments


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(2, 1)

    def forward(self, features, labels=None):
        return {"loss": (self.line(features).squeeze(-1) - labels).square().mean()}


def to_tensors(batch):
    return {"features": torch.tensor(batch["raw"]) / 100, "labels": torch.tensor(batch["labels"])}


torch.manual_seed(0)
rows = Dataset.from_dict({"raw": [[120.0, 40.0]] * 8, "labels": [1.0] * 8}).with_transform(to_tensors)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, max_steps=1, report_to="none", use_cpu=True, disable_tqdm=True, remove_unused_columns=False)
    Trainer(model=Regressor(), args=arguments, train_dataset=rows).train()
