"""Weights for unbalanced classes are computed by NumPy, which divides counts in float64; the scores are float32."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
labels = np.array([0, 0, 0, 0, 0, 1, 1, 2])
counts = np.bincount(labels, minlength=3)
balanced = torch.from_numpy(len(labels) / (3 * counts)).float()
model = nn.Linear(6, 3)
criterion = nn.CrossEntropyLoss(weight=balanced)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = criterion(model(torch.randn(8, 6)), torch.from_numpy(labels))
loss.backward()
optimizer.step()
