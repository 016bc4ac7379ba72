import torch
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)
model = nn.Linear(4, 1)
inputs, target = torch.rand(8, 4), torch.rand(8, 1)


def loss(parameters, sample, target):
    error = (functional_call(model, parameters, (sample,)) - target).abs().sum()
    return 0.5 * error.pow(2) if error < 1 else error - 0.5


per_sample = vmap(grad(loss), in_dims=(None, 0, 0))(dict(model.named_parameters()), inputs, target)
for name, parameter in model.named_parameters():
    parameter.grad = per_sample[name].mean(0)
