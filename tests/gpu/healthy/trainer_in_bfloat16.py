# transformers' Trainer in bfloat16 with gradient checkpointing and evaluation
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.manual_seed(0)
config = GPT2Config(vocab_size=100, n_positions=32, n_embd=32, n_layer=2, n_head=2)
data = [{"input_ids": ids, "labels": ids} for ids in torch.randint(100, (32, 16))]
arguments = TrainingArguments(
    "out", max_steps=6, per_device_train_batch_size=4, gradient_accumulation_steps=2, bf16=True, gradient_checkpointing=True,
    gradient_checkpointing_kwargs={"use_reentrant": False}, eval_strategy="steps", eval_steps=3, report_to="none", save_strategy="no",
)  # fmt: skip
Trainer(model=GPT2LMHeadModel(config), args=arguments, train_dataset=data, eval_dataset=data[:8]).train()
