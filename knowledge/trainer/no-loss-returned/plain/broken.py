"""The dataset calls its labels `target`: the Trainer passes no `labels`, so the model computes logits and no loss."""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(0)
size = BertConfig(vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = BertForSequenceClassification(size)
rows = [{"input_ids": [1, 2, 3], "target": 1}] * 8
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, max_steps=1, report_to="none", use_cpu=True, disable_tqdm=True)
    Trainer(model=model, args=arguments, train_dataset=rows).train()
