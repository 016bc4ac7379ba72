import torch
from torch import nn

torch.manual_seed(0)
model = nn.LSTM(4, 8, batch_first=True).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.rand(2, 5, 4, device="cuda")
model.eval()
with torch.no_grad():
    validation = model(inputs)[0]
output, _ = model(inputs)
loss = output.pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
