import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Features(Dataset):
    def __init__(self, encoder, images, labels):
        self.rows, self.labels = [], labels
        for image in images:
            self.rows.append(encoder(image))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], self.labels[i]


torch.manual_seed(0)
encoder, head = nn.Sequential(nn.Linear(6, 8), nn.Tanh()), nn.Linear(8, 3)
data = Features(encoder, torch.rand(16, 6), torch.randint(3, (16,)))
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for epoch in range(2):
    for rows, labels in DataLoader(data, batch_size=8):
        loss = nn.functional.cross_entropy(head(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
