"""A layer normalises its own weight in place at each call, and is called twice before backward."""

import torch
from torch import nn


class UnitLinear(nn.Linear):
    def forward(self, x):
        with torch.no_grad():
            self.weight.div_(self.weight.norm(dim=1, keepdim=True))
        return nn.functional.linear(x, self.weight.clone(), self.bias)


torch.manual_seed(0)
encoder, head = nn.Linear(6, 8), UnitLinear(8, 4)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
first, second = torch.randn(5, 6), torch.randn(5, 6)
loss = head(encoder(first)).pow(2).mean() + head(encoder(second)).abs().mean()
loss.backward()
optimizer.step()
