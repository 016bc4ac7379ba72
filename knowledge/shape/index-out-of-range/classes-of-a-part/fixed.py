import torch
from torch import nn
from torch.nn import functional as F


def fold(x, y, away):
    train_x, train_y = x[~away], y[~away]
    model = nn.Linear(x.size(1), int(y.max()) + 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = F.cross_entropy(model(train_x), train_y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return F.cross_entropy(model(x[away]), y[away]).item()


torch.manual_seed(0)
labels = torch.tensor([0, 1, 2, 3, 4, 1, 2, 0, 3, 5])
print(fold(torch.randn(10, 4), labels, torch.arange(10) > 6))
