"""The Trainer with activation checkpointing and evaluation. needs: transformers accelerate"""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=2, n_positions=32))
data = [{"input_ids": torch.randint(0, 64, (12,)), "labels": torch.randint(0, 64, (12,))} for _ in range(32)]
arguments = TrainingArguments(
    "out",
    report_to=[],
    use_cpu=True,
    max_steps=6,
    gradient_checkpointing=True,
    eval_strategy="steps",
    eval_steps=3,
    gradient_checkpointing_kwargs={"use_reentrant": False},
)
Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=data[:8]).train()
