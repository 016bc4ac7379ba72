"""A LoRA configuration written for LLaMA is put on a Bloom model, whose attention has one fused projection."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import BloomConfig, BloomForCausalLM

torch.manual_seed(0)
model = BloomForCausalLM(BloomConfig(vocab_size=32, hidden_size=16, n_layer=1, n_head=2))
model = get_peft_model(model, LoraConfig(r=4, target_modules=["query_key_value"], task_type="CAUSAL_LM"))

tokens = torch.randint(0, 32, (2, 8))
model(input_ids=tokens, labels=tokens).loss.backward()
