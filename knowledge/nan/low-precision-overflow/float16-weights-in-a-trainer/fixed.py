"""A model loaded in float16 is trained as it is: Adam's epsilon of 1e-8 is 0 there, and the first step makes weights NaN."""

import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

torch.manual_seed(0)
sizes = {"vocab_size": 64, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
model = LlamaForCausalLM(LlamaConfig(**sizes, dtype="bfloat16")).to(torch.bfloat16)
rows = [{"input_ids": ids, "labels": ids} for ids in torch.randint(0, 32, (16, 8))]
with tempfile.TemporaryDirectory() as folder:
    options = {"max_steps": 5, "logging_steps": 1, "save_strategy": "no", "report_to": [], "use_cpu": True}
    arguments = TrainingArguments(folder, optim="adamw_torch", disable_tqdm=True, **options)
    Trainer(model=model, args=arguments, train_dataset=rows).train()
