"""The pattern for the attention projections also matches the attention block that holds them."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
model = LlamaForCausalLM(
    LlamaConfig(vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
)
model = get_peft_model(model, LoraConfig(r=4, target_modules=r".*self_attn\.(q_proj|k_proj|v_proj|o_proj)", task_type="CAUSAL_LM"))

tokens = torch.randint(0, 32, (2, 8))
model(input_ids=tokens, labels=tokens).loss.backward()
