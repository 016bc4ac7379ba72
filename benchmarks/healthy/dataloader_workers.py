"""Batches come from worker processes."""

import torch
from torch import nn


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((4,), float(index) / 64)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=2, shuffle=True):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
