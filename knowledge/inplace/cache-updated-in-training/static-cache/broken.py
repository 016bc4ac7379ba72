"""Two chunks of one text run through a StaticCache, whose slots the second forward overwrites."""

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM, StaticCache

torch.manual_seed(0)
torch.autograd.set_detect_anomaly(True)
config = Qwen2Config(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
)
model = Qwen2ForCausalLM(config).train()
cache = StaticCache(config=config, max_cache_len=16)
loss = 0.0
for chunk in torch.randint(64, (1, 8)).split(4, dim=1):
    loss = loss + model(input_ids=chunk, labels=chunk, past_key_values=cache, use_cache=True).loss
loss.backward()
