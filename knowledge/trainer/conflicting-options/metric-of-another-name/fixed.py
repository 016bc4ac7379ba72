"""The best model is chosen by a metric that `compute_metrics` returns under another name."""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(0)
size = BertConfig(vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = BertForSequenceClassification(size)
rows = [{"input_ids": [1, 2, 3], "labels": 1}] * 8


def metrics(found):
    return {"accuracy": float((found.predictions.argmax(-1) == found.label_ids).mean())}


with tempfile.TemporaryDirectory() as folder:
    best = dict(eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True, metric_for_best_model="accuracy")
    arguments = TrainingArguments(
        folder, report_to="none", use_cpu=True, disable_tqdm=True, num_train_epochs=1, **best
    )
    Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=rows, compute_metrics=metrics).train()
