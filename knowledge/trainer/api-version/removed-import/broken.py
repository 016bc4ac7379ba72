"""transformers has removed its own `AdamW` (4.48 still had it); torch has one."""

import torch
from transformers import AdamW, BertConfig, BertForSequenceClassification

torch.manual_seed(0)
size = BertConfig(vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = BertForSequenceClassification(size)
optimizer = AdamW(model.parameters(), lr=1e-3)
model(input_ids=torch.randint(0, 32, (2, 8)), labels=torch.tensor([0, 1])).loss.backward()
optimizer.step()
