"""A head is added with to_empty and not initialised: the first row of the log shows 0, which stands for NaN."""

import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
sizes = {"vocab_size": 64, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
model = LlamaForCausalLM(LlamaConfig(**sizes, tie_word_embeddings=False))
head = torch.nn.Linear(16, 64, bias=False, device="meta").to_empty(device="cpu")
model.lm_head = head
rows = [{"input_ids": ids, "labels": ids} for ids in torch.randint(0, 64, (16, 8))]
with tempfile.TemporaryDirectory() as folder:
    options = {"max_steps": 4, "logging_steps": 1, "save_strategy": "no", "report_to": [], "use_cpu": True}
    arguments = TrainingArguments(folder, disable_tqdm=True, **options)
    Trainer(model=model, args=arguments, train_dataset=rows).train()
