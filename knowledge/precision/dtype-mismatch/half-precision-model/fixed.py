"""The model is cast to bfloat16, the images stay float32 and no autocast is on."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 2)).to(torch.bfloat16)

images, labels = torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 1, 0])
loss = nn.functional.cross_entropy(model(images.to(torch.bfloat16)), labels)
loss.backward()
