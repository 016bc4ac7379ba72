"""Half of the examples lost their answer to truncation: every label of theirs is -100, and their rows show loss 0."""

import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

torch.manual_seed(0)
sizes = {"vocab_size": 64, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
model = LlamaForCausalLM(LlamaConfig(**sizes))
max_length, prompts = 12, [12, 5, 5, 12] * 4
rows = []
for prompt in prompts:
    ids = torch.randint(0, 64, (16,))
    labels = torch.where(torch.arange(16) < prompt, -100, ids)
    rows.append({"input_ids": ids[:max_length], "labels": labels[:max_length]})
with tempfile.TemporaryDirectory() as folder:
    options = {"max_steps": 8, "logging_steps": 1, "save_strategy": "no", "report_to": [], "use_cpu": True}
    options.update(per_device_train_batch_size=1, disable_tqdm=True)
    Trainer(model=model, args=TrainingArguments(folder, **options), train_dataset=rows).train()
