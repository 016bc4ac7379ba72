"""A language model is called without labels, and then it computes no loss."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)

model = GPT2LMHeadModel(GPT2Config(vocab_size=32, n_embd=16, n_layer=1, n_head=2, n_positions=16))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
tokens = torch.randint(0, 32, (4, 8))
for _ in range(3):
    optimizer.zero_grad()
    outputs = model(input_ids=tokens, labels=tokens)
    outputs.loss.backward()
    optimizer.step()
