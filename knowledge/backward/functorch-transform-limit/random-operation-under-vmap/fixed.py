import torch
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 1))
inputs, target = torch.rand(8, 4), torch.rand(8, 1)


def loss(parameters, sample, target):
    return nn.functional.mse_loss(functional_call(model, parameters, (sample,)), target)


per_sample = vmap(grad(loss), in_dims=(None, 0, 0), randomness="different")(dict(model.named_parameters()), inputs, target)
for name, parameter in model.named_parameters():
    parameter.grad = per_sample[name].mean(0)
