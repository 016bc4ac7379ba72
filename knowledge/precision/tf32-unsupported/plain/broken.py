"""The trainer's arguments ask for TF32 on a machine whose accelerator does not have it (here: none at all)."""
import torch
from torch import nn
from transformers import TrainingArguments

torch.manual_seed(0)
args = TrainingArguments(output_dir="output", max_steps=1, tf32=True, report_to=[])

model = nn.Linear(4, 1)
loss = model(torch.randn(args.per_device_train_batch_size, 4)).pow(2).mean()
loss.backward()
