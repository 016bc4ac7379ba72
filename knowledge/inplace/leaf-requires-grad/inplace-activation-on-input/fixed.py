"""An adversarial step asks for the input's gradient, and the first layer is an activation with inplace=True."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.LeakyReLU(0.1, inplace=False), nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
images, labels = torch.randn(4, 6), torch.tensor([0, 1, 2, 0])
images.requires_grad_(True)
loss = nn.functional.cross_entropy(model(images), labels)
loss.backward()
adversarial = images.detach() + 0.03 * images.grad.sign()
