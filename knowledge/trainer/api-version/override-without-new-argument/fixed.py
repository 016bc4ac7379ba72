"""The Trainer passes `num_items_in_batch` to `compute_loss` since transformers 4.46; the override does not take it."""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class SmoothTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        loss = torch.nn.functional.cross_entropy(outputs.logits, inputs["labels"], label_smoothing=0.1)
        return (loss, outputs) if return_outputs else loss


torch.manual_seed(0)
size = BertConfig(vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = BertForSequenceClassification(size)
rows = [{"input_ids": [1, 2, 3], "labels": 1}] * 8
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, max_steps=1, report_to="none", use_cpu=True, disable_tqdm=True)
    SmoothTrainer(model=model, args=arguments, train_dataset=rows).train()
