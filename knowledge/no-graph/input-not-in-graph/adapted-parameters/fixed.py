import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, target = torch.randn(8, 4), torch.randn(8, 1)

parameters = dict(model.named_parameters())
for _ in range(2):
    loss = nn.functional.mse_loss(functional_call(model, parameters, (x,)), target)
    gradients = torch.autograd.grad(loss, tuple(parameters.values()), create_graph=True)
    parameters = {name: p - 0.1 * g for (name, p), g in zip(parameters.items(), gradients)}
loss = nn.functional.mse_loss(functional_call(model, parameters, (x,)), target)
loss.backward()
optimizer.step()
