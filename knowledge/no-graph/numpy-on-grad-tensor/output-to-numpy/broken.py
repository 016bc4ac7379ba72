import torch
from torch import nn

torch.manual_seed(0)
model = nn.Conv2d(1, 2, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
image = torch.rand(1, 1, 8, 8)
features = model(image)
loss = features.square().mean()
loss.backward()
optimizer.step()
picture = features[0, 0].cpu().numpy()
