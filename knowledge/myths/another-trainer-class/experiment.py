"""`Trainer` and `Seq2SeqTrainer` where the model's own forward writes a saved tensor in place."""

import tempfile
import warnings

import torch
from torch import nn
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, Trainer, TrainingArguments

warnings.simplefilter("ignore")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.head = nn.Linear(3, 4), nn.Linear(4, 1)

    def forward(self, features, labels):
        h = torch.tanh(self.layer(features))
        h += 1
        output = self.head(h)
        return {"loss": (output - labels).pow(2).mean(), "logits": output}


def error_of(train):
    try:
        train()
    except RuntimeError as failure:
        return str(failure).partition(":")[0]
    return "none"


def train_with(trainer, arguments):
    data = [{"features": torch.randn(3), "labels": torch.randn(1)} for _ in range(4)]
    with tempfile.TemporaryDirectory() as folder:
        options = arguments(folder, max_steps=1, report_to="none", use_cpu=True, disable_tqdm=True)
        trainer(Model(), options, train_dataset=data).train()


found = {
    "own loop": error_of(lambda: Model()(torch.randn(2, 3), torch.randn(2, 1))["loss"].backward()),
    "Trainer": error_of(lambda: train_with(Trainer, TrainingArguments)),
    "Seq2SeqTrainer": error_of(lambda: train_with(Seq2SeqTrainer, Seq2SeqTrainingArguments)),
}
for name, error in found.items():
    print(f"error, {name}: {error}")

assert set(found.values()) == {"one of the variables needed for gradient computation has been modified by an inplace operation"}
