import torch

torch.manual_seed(0)
x, target = torch.randn(16, 3), torch.randn(16, 1)
weight = (torch.randn(3, 1) * 0.01).requires_grad_(True)
for _ in range(2):
    loss = (x @ weight - target).square().mean()
    loss.backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
        weight.grad.zero_()
