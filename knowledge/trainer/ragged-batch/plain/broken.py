"""Rows of different length go to the Trainer with its default collator, which does not pad."""

import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

torch.manual_seed(0)
size = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
model = LlamaForCausalLM(LlamaConfig(vocab_size=32, **size))
rows = [{"input_ids": [1, 2, 3][:n], "labels": [1, 2, 3][:n]} for n in (3, 2, 3, 2)]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, max_steps=1, report_to="none", use_cpu=True, disable_tqdm=True)
    Trainer(model=model, args=arguments, train_dataset=rows).train()
