"""A Trainer run that is right in itself; accelerate 0.33.0 beside transformers 4.45.2 fails in its first step."""

from tempfile import mkdtemp

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=32, n_positions=16, n_embd=16, n_layer=1, n_head=2))
tokens = torch.randint(32, (8, 16))
rows = [{"input_ids": row, "labels": row} for row in tokens]
arguments = TrainingArguments(
    mkdtemp(), use_cpu=True, max_steps=2, report_to=[], save_strategy="no", disable_tqdm=True, logging_strategy="no"
)
Trainer(model=model, args=arguments, train_dataset=rows).train()
