"""Class labels read from a table are floats; cross-entropy takes class indices as integers."""
import torch
from torch import nn

torch.manual_seed(0)
table = torch.tensor([[0.3, 1.2, 0.0], [0.1, 0.4, 2.0], [1.1, 0.2, 1.0]])
features, labels = table[:, :2], table[:, 2]
model = nn.Linear(2, 3)

loss = nn.functional.cross_entropy(model(features), labels)
loss.backward()
