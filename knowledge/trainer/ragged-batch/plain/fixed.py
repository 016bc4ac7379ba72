"""Rows of different length go to the Trainer with its default collator, which does not pad."""

import tempfile

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments


def pad(rows):
    ids, labels = ([torch.tensor(row[key]) for row in rows] for key in ("input_ids", "labels"))
    return {
        "input_ids": pad_sequence(ids, batch_first=True),
        "attention_mask": pad_sequence([torch.ones_like(row) for row in ids], batch_first=True),
        "labels": pad_sequence(labels, batch_first=True, padding_value=-100),
    }


torch.manual_seed(0)
size = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
model = LlamaForCausalLM(LlamaConfig(vocab_size=32, **size))
rows = [{"input_ids": [1, 2, 3][:n], "labels": [1, 2, 3][:n]} for n in (3, 2, 3, 2)]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, max_steps=1, report_to="none", use_cpu=True, disable_tqdm=True)
    Trainer(model=model, args=arguments, train_dataset=rows, data_collator=pad).train()
