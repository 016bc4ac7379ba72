"""The Trainer of transformers on a tiny model. needs: transformers accelerate"""

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

config = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=2,
)
model = LlamaForCausalLM(config)
data = [{"input_ids": torch.randint(0, 64, (12,)), "labels": torch.randint(0, 64, (12,))} for _ in range(32)]
arguments = TrainingArguments(
    "out",
    report_to=[],
    use_cpu=True,
    max_steps=6,
    per_device_train_batch_size=4,
    logging_steps=2,
    gradient_accumulation_steps=2,
)
Trainer(model=model, args=arguments, train_dataset=data).train()
