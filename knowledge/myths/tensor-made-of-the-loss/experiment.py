"""`torch.tensor(loss, requires_grad=True)` and `Variable(loss, requires_grad=True)` as a way to get a graph."""

import warnings

import torch
from torch import nn
from torch.autograd import Variable

warnings.simplefilter("ignore")  # torch.tensor(tensor) advises against itself
MAKERS = {
    "torch.tensor": lambda loss: torch.tensor(loss, requires_grad=True),
    "Variable": lambda loss: Variable(loss.detach(), requires_grad=True),
    "the loss itself": lambda loss: loss,
}
received = {}
for name, make in MAKERS.items():
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    loss = make(model(torch.randn(8, 3)).pow(2).mean())
    loss.backward()
    gradient = model.weight.grad
    received[name] = None if gradient is None else round(gradient.norm().item(), 4)
    print(f"gradient norm of the weight, {name}: {received[name]}")

assert received["torch.tensor"] is None and received["Variable"] is None
assert received["the loss itself"] > 0
