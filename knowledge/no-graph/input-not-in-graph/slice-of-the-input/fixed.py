import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

points = torch.rand(32, 2, requires_grad=True)
x, t = points[:, 0:1], points[:, 1:2]
u = net(torch.cat([x, t], dim=1))
(u_t,) = torch.autograd.grad(u.sum(), t, create_graph=True)
(u_x,) = torch.autograd.grad(u.sum(), x, create_graph=True)
loss = (u_t + u * u_x).square().mean()
loss.backward()
optimizer.step()
