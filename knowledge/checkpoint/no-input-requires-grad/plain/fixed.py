"""The first segment of a network gets the raw images, which do not require grad: its weights get no gradient, and no error."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
stem = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
head = nn.Linear(8, 3)
images, labels = torch.randn(6, 8), torch.tensor([0, 1, 2, 0, 1, 2])

features = checkpoint(stem, images, use_reentrant=False)
loss = nn.functional.cross_entropy(head(features), labels)
loss.backward()
assert head.weight.grad is not None
assert stem[0].weight.grad is not None, "the checkpointed segment got no gradient"
