"""A second adapter is added to a transformers model under the name that the first one has by default."""

import torch
from peft import LoraConfig
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
model = LlamaForCausalLM(
    LlamaConfig(vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
)
model.add_adapter(LoraConfig(r=4, target_modules=["q_proj"]))
model.add_adapter(LoraConfig(r=8, target_modules=["v_proj"]), adapter_name="second")

tokens = torch.randint(0, 32, (2, 8))
model(input_ids=tokens, labels=tokens).loss.backward()
