"""The entropy of a policy is written with the logarithm of its probabilities, one of which has rounded to 0."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)

torch.manual_seed(0)
policy = nn.Linear(4, 3)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
observation = torch.randn(8, 4) * 300.0
logits = policy(observation)
probs = torch.softmax(logits, dim=-1)
log_probs = torch.log_softmax(logits, dim=-1)
entropy = -(probs * log_probs).sum(-1).mean()
loss = -0.01 * entropy
loss.backward()
optimizer.step()
