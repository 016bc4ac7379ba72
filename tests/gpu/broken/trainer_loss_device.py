# device/mixed-devices
# mended: weight = weight.to(labels.device)
import torch
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Weighted(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        weight = torch.tensor([0.3, 0.7])
        loss = nn.functional.cross_entropy(outputs.logits, labels, weight=weight)
        return (loss, outputs) if return_outputs else loss


config = BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
data = [{"input_ids": torch.randint(100, (12,)), "labels": torch.tensor(number % 2)} for number in range(32)]
arguments = TrainingArguments("out", max_steps=4, per_device_train_batch_size=8, report_to="none", save_strategy="no")
Weighted(model=BertForSequenceClassification(config), args=arguments, train_dataset=data).train()
