import torch
import torch.autograd.forward_ad as forward_ad
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1, bias=False))
inputs, direction = torch.rand(5, 3), torch.rand(5, 3)
with forward_ad.dual_level():
    output = model(forward_ad.make_dual(inputs, direction))
    value, slope = forward_ad.unpack_dual(output)
loss = (slope - 1).pow(2).mean()
loss.backward()
