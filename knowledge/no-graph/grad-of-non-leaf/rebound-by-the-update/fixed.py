import torch

torch.manual_seed(0)
x, target = torch.randn(16, 3), torch.randn(16, 1)
weight = torch.zeros(3, 1, requires_grad=True)
for _ in range(2):
    loss = (x @ weight - target).square().mean()
    loss.backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
    weight.grad.zero_()
