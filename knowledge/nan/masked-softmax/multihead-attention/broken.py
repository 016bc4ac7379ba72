"""nn.MultiheadAttention is asked for its weights, and a key_padding_mask hides a whole sample."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)

torch.manual_seed(0)
attention, head = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 1)
x = torch.randn(3, 5, 8)
padding = torch.arange(5)[None] >= torch.tensor([5, 3, 0])[:, None]
output, _ = attention(x, x, x, key_padding_mask=padding)
loss = head(output[~padding]).pow(2).mean()
loss.backward()
torch.optim.SGD([*attention.parameters(), *head.parameters()], lr=0.1).step()
