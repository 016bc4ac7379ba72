"""A compiled function writes to a detached alias of a parameter that it also reads."""

import torch
from torch import nn

torch.manual_seed(0)

weight = nn.Parameter(torch.randn(8))


@torch.compile(backend="aot_eager")
def decayed_penalty(values, parameter):
    return parameter.pow(2).sum()


weight.detach().mul_(0.9)
decayed_penalty(weight.detach(), weight).backward()
