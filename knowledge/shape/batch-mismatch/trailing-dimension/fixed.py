"""One logit a sample in a column, labels in a row."""

import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(8, 1)
inputs, labels = torch.randn(6, 8), torch.randint(2, (6,)).float()
logits = model(inputs)
loss = nn.BCEWithLogitsLoss()(logits.squeeze(-1), labels)
loss.backward()
