import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.fc = nn.Linear(16, 3)

    def forward(self, x):
        return self.fc(self.backbone(x))


torch.manual_seed(0)
model = Classifier()
for name, parameter in model.named_parameters():
    if not name.startswith("fc."):
        parameter.requires_grad = False
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

x, target = torch.randn(4, 8), torch.tensor([0, 1, 2, 0])
loss = nn.functional.cross_entropy(model(x), target)
loss.backward()
optimizer.step()
