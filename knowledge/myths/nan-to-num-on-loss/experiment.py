"""`torch.nan_to_num` on the loss, or on the value that became NaN."""

import torch

nan_to_num = torch.nan_to_num


def entropy(p):
    return -(p * p.log())


LOSSES = {
    "nothing": lambda p: entropy(p).sum(),
    "nan_to_num on the loss": lambda p: nan_to_num(entropy(p).sum()),
    "nan_to_num on the terms": lambda p: nan_to_num(entropy(p)).sum(),
    "nan_to_num on the logarithm": lambda p: -(p * nan_to_num(p.log())).sum(),
    "torch.special.entr": lambda p: torch.special.entr(p).sum(),
    "clamped argument": lambda p: -(p * p.clamp_min(1e-6).log()).sum(),
}
found = {}
for name, loss_of in LOSSES.items():
    weight = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    p = torch.softmax(weight, 0) * torch.tensor([1.0, 1.0, 0.0])  # the third class is masked out
    loss = loss_of(p)
    loss.backward()
    found[name] = [round(one, 4) for one in weight.grad.tolist()]
    print(f"loss and gradient, {name}: {loss.item():.4f} {found[name]}")

*wrong, right = found.values()
assert all(one != one for gradient in wrong for one in gradient)
assert all(one == one and one != 0 for one in right)
