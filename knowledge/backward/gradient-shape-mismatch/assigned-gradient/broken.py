import torch
from torch import nn

torch.manual_seed(0)
model, worker = nn.Linear(4, 3), nn.Linear(4, 3)
worker.load_state_dict(model.state_dict())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
worker(torch.rand(8, 4)).pow(2).mean().backward()
flat = torch.cat([parameter.grad.flatten() for parameter in worker.parameters()])
for parameter, piece in zip(model.parameters(), flat.split([12, 3])):
    parameter.grad = piece
optimizer.step()
