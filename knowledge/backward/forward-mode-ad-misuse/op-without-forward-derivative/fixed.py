import torch
from torch import nn
from torch.func import jvp
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(0)
project = nn.Linear(8, 24)


def attend(inputs):
    query, key, value = project(inputs).unsqueeze(1).chunk(3, dim=-1)
    return nn.functional.scaled_dot_product_attention(query, key, value)


inputs, direction = torch.rand(2, 6, 8), torch.rand(2, 6, 8)
with sdpa_kernel(SDPBackend.MATH):
    output, slope = jvp(attend, (inputs,), (direction,))
slope.pow(2).mean().backward()
