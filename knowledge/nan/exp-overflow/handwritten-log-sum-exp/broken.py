"""Cross entropy is written out with exp and log; a logit above 88.7 makes the sum infinite."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)


def cross_entropy(logits, target):
    log_sum = torch.log(torch.exp(logits).sum(-1))
    return (log_sum - logits.gather(-1, target[:, None]).squeeze(-1)).mean()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
features = torch.randn(16, 10) * 500.0
loss = cross_entropy(model(features), torch.randint(0, 5, (16,)))
loss.backward()
torch.optim.SGD(model.parameters(), lr=1e-4).step()
