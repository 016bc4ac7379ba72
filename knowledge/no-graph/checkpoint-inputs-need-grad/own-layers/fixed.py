import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.adapter = nn.Linear(width, width)

    def forward(self, x):
        return torch.tanh(self.base(x) + self.adapter(x))


torch.manual_seed(0)
embed = nn.Embedding(16, 8).requires_grad_(False)
blocks = nn.ModuleList(Block(8) for _ in range(2))
head = nn.Linear(8, 16).requires_grad_(False)
optimizer = torch.optim.SGD([p for p in blocks.parameters() if p.requires_grad], lr=0.1)

tokens = torch.randint(0, 16, (4, 6))
hidden = embed(tokens)
for block in blocks:
    hidden = checkpoint(block, hidden, use_reentrant=False)
loss = nn.functional.cross_entropy(head(hidden).flatten(0, 1), tokens.flatten())
loss.backward()
optimizer.step()
