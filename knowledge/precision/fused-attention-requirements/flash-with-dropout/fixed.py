"""Only the flash kernel is allowed, and on this device it does not take dropout."""
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(0)
project = nn.Linear(8, 24)
query, key, value = project(torch.randn(2, 5, 8)).view(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)

with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
    context = nn.functional.scaled_dot_product_attention(query, key, value, dropout_p=0.1)
loss = context.pow(2).mean()
loss.backward()
