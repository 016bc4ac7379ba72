import torch
from torch import nn


class ReverseGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, inputs, strength):
        ctx.strength = strength
        return inputs.view_as(inputs)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad


torch.manual_seed(0)
encoder, domain = nn.Linear(4, 6), nn.Linear(6, 2)
optimizer = torch.optim.SGD([*encoder.parameters(), *domain.parameters()], lr=0.1)
inputs, labels = torch.rand(8, 4), torch.randint(2, (8,))
logits = domain(ReverseGradient.apply(encoder(inputs), 0.5))
loss = nn.functional.cross_entropy(logits, labels)
optimizer.zero_grad()
loss.backward()
optimizer.step()
