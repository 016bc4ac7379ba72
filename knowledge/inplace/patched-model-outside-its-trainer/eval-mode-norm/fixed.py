"""A patched final norm runs its decode-time kernel, in place, because nobody called model.train()."""

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM


def patch(norm):
    def decode_norm(x):
        wide = x.to(torch.float32)
        variance = wide.square().mean(-1, keepdim=True) + norm.variance_epsilon
        wide *= variance.rsqrt_()
        return wide.to(x.dtype) * norm.weight

    train_norm = norm.forward
    norm.forward = lambda x: train_norm(x) if norm.training else decode_norm(x)


torch.manual_seed(0)
torch.autograd.set_detect_anomaly(True)
sizes = dict(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2)
config = Qwen2Config(num_attention_heads=4, num_key_value_heads=2, **sizes)
model = Qwen2ForCausalLM(config).to(torch.bfloat16).eval()
patch(model.model.norm)
tokens = torch.randint(64, (1, 24))
model.train()
loss = model(input_ids=tokens, labels=tokens).loss
loss.backward()
