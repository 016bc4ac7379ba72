import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3).double()
scales = torch.ones(3).to(torch.float64).requires_grad_(True)
optimizer = torch.optim.SGD([scales, *model.parameters()], lr=0.1)

x, target = torch.randn(8, 4, dtype=torch.float64), torch.randint(0, 3, (8,))
loss = nn.functional.cross_entropy(scales * model(x), target)
loss.backward()
optimizer.step()
