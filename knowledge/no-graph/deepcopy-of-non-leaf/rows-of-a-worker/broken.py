import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def extract(model, images):
    return torch.cat([model(part) for part in images.split(8)])


torch.manual_seed(0)
encoder, head = nn.Sequential(nn.Linear(6, 8), nn.Tanh()), nn.Linear(8, 3)
data = TensorDataset(extract(encoder, torch.rand(16, 6)), torch.randint(3, (16,)))
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for rows, labels in DataLoader(data, batch_size=8, num_workers=1, multiprocessing_context="fork"):
    loss = nn.functional.cross_entropy(head(rows), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
