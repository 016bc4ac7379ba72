"""Labels 0 and 1 are integers; binary cross-entropy takes them as floating-point probabilities."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
features, labels = torch.randn(6, 4), torch.tensor([0, 1, 1, 0, 1, 0])

loss = nn.functional.binary_cross_entropy_with_logits(model(features).squeeze(1), labels.float())
loss.backward()
