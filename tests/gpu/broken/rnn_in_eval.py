# backward/cudnn-rnn-in-eval
# mended: model.train()
import torch
from torch import nn


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(x)[0].mean(-1), y).item()


torch.manual_seed(0)
model = nn.LSTM(4, 8, batch_first=True).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.rand(16, 5, 4, device="cuda"), torch.rand(16, 5, device="cuda")
for epoch in range(6):
    print(evaluate(model, x, y))
    loss = nn.functional.mse_loss(model(x)[0].mean(-1), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
