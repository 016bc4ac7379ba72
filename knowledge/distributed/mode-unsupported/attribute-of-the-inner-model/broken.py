"""The optimizer is given the parts of a model by name, and the model is wrapped by then."""

import torch
from torch import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 16)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(torch.relu(self.encoder(x)))


model = nn.DataParallel(Classifier())
optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-2)
x, labels = torch.randn(32, 8), torch.randint(0, 3, (32,))
for _ in range(3):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), labels).backward()
    optimizer.step()
