"""A penalty on the distance to the starting point is 0 at the first step, where its root has no slope: rows, no exception."""

import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments


class AnchoredTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **rest):
        weight = model.lm_head.weight
        self.start = getattr(self, "start", weight.detach().clone())
        drift = ((weight - self.start) ** 2).sum().sqrt()
        return model(**inputs).loss + 0.1 * drift


torch.manual_seed(0)
sizes = {"vocab_size": 64, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
model = LlamaForCausalLM(LlamaConfig(**sizes))
rows = [{"input_ids": ids, "labels": ids} for ids in torch.randint(0, 64, (16, 8))]
with tempfile.TemporaryDirectory() as folder:
    options = {"max_steps": 5, "logging_steps": 1, "save_strategy": "no", "report_to": [], "use_cpu": True}
    arguments = TrainingArguments(folder, disable_tqdm=True, **options)
    AnchoredTrainer(model=model, args=arguments, train_dataset=rows).train()
