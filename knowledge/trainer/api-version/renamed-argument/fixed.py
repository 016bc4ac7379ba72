"""`evaluation_strategy` became `eval_strategy` in transformers 4.41; from 4.53 on the old name is refused."""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(0)
size = BertConfig(vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = BertForSequenceClassification(size)
rows = [{"input_ids": [1, 2, 3], "labels": 1}] * 8
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, max_steps=1, eval_strategy="epoch", report_to="none", use_cpu=True, disable_tqdm=True
    )
    Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=rows).train()
