# device/mixed-devices
# mended: loss = criterion(model(images), targets.to(device))
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(model, loader, optimizer, device):
    criterion = nn.CrossEntropyLoss()
    for images, targets in loader:
        images = images.to(device)
        optimizer.zero_grad()
        loss = criterion(model(images), targets)
        loss.backward()
        optimizer.step()


torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 8), torch.randint(3, (64,)))
model = nn.Linear(8, 3).to("cuda")
train(model, DataLoader(data, batch_size=16), torch.optim.SGD(model.parameters(), lr=0.1), "cuda")
