"""BERT for masked language modelling: its pooler never gets a gradient. needs: transformers"""

import torch
from transformers import BertConfig, BertModel

config = BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
model, head = BertModel(config), torch.nn.Linear(32, 64)
optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-3)
for step in range(6):
    ids = torch.randint(0, 64, (4, 12))
    optimizer.zero_grad()
    logits = head(model(input_ids=ids).last_hidden_state)
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten()).backward()
    optimizer.step()
