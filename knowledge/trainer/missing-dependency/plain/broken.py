"""FlashAttention is asked for by name, and the package `flash_attn` is not installed."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
size = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
config = LlamaConfig(vocab_size=32, attn_implementation="flash_attention_2", **size)
model = LlamaForCausalLM(config)
tokens = torch.randint(0, 32, (2, 8))
model(input_ids=tokens, labels=tokens).loss.backward()
