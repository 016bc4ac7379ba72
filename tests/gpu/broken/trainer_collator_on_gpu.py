# device/mixed-devices
# mended: "out", max_steps=4, per_device_train_batch_size=8, report_to="none", save_strategy="no", bf16=True, dataloader_pin_memory=False
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Texts(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        torch.manual_seed(index)
        return {"input_ids": torch.randint(100, (12,), device="cuda"), "labels": torch.tensor(index % 2, device="cuda")}


config = BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
model = BertForSequenceClassification(config)
arguments = TrainingArguments(
    "out", max_steps=4, per_device_train_batch_size=8, report_to="none", save_strategy="no", bf16=True
)
Trainer(model=model, args=arguments, train_dataset=Texts()).train()
