"""A loop of one's own calls the model without labels, and its output has no loss."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
model = LlamaForCausalLM(
    LlamaConfig(vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
)
batch = {"input_ids": torch.randint(0, 32, (2, 8))}
outputs = model(**batch, labels=batch["input_ids"])
outputs.loss.backward()
