"""A regular expression spells the whole path `model.layers...`, which this class of model does not have."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaModel

torch.manual_seed(0)
model = LlamaModel(
    LlamaConfig(vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
)
projections = r"model\.layers\.\d+\.self_attn\.(q|v)_proj"
model = get_peft_model(model, LoraConfig(r=4, target_modules=projections))

model(input_ids=torch.randint(0, 32, (2, 8))).last_hidden_state.mean().backward()
