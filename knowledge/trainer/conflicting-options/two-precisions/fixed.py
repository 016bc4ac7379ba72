"""A configuration that grew by copying asks for float16 and for bfloat16."""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(0)
size = BertConfig(vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = BertForSequenceClassification(size)
rows = [{"input_ids": [1, 2, 3], "labels": 1}] * 8
with tempfile.TemporaryDirectory() as folder:
    precision = dict(bf16=True)
    arguments = TrainingArguments(folder, max_steps=1, report_to="none", use_cpu=True, disable_tqdm=True, **precision)
    Trainer(model=model, args=arguments, train_dataset=rows).train()
