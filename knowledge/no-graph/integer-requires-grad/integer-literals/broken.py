import torch

torch.manual_seed(0)
x = torch.randn(8, 3)
target = x.sum(dim=1, keepdim=True)
weight = torch.tensor([[1], [2], [3]], requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
loss = (x @ weight - target).square().mean()
loss.backward()
optimizer.step()
