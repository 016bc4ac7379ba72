"""`load_best_model_at_end` needs an evaluation at each save, and evaluation is off by default."""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(0)
size = BertConfig(vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = BertForSequenceClassification(size)
rows = [{"input_ids": [1, 2, 3], "labels": 1}] * 8
with tempfile.TemporaryDirectory() as folder:
    schedule = dict(save_strategy="epoch", eval_strategy="epoch", load_best_model_at_end=True, num_train_epochs=1)
    arguments = TrainingArguments(folder, report_to="none", use_cpu=True, disable_tqdm=True, **schedule)
    Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=rows).train()
