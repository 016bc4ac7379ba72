import torch
from torch import nn


class Signs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        signs = weight.sign() * weight.abs().mean()
        ctx.save_for_backward(x, signs)
        return x @ signs.t()

    @staticmethod
    def backward(ctx, grad):
        x, signs = ctx.saved_tensors
        return grad @ signs, grad.t() @ x


class Binary(nn.Linear):
    def forward(self, x):
        return Signs.apply(x, self.weight)


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), Binary(16, 1, bias=False))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(32, 8), torch.randn(32, 1)
for _ in range(3):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        made = net(x)
    loss = nn.functional.mse_loss(made.float(), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
