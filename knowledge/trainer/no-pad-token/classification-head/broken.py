"""A decoder with a classification head gets a batch of two and has no `pad_token_id` to find each last token by."""

import torch
from transformers import LlamaConfig, LlamaForSequenceClassification

torch.manual_seed(0)
size = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
model = LlamaForSequenceClassification(LlamaConfig(vocab_size=32, **size))
tokens = torch.tensor([[5, 6, 7], [5, 6, 2]])
model(input_ids=tokens, labels=torch.tensor([0, 1])).loss.backward()
