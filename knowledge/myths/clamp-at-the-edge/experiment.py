"""Clamping to the edge of a domain, or after the operation: `acos(clamp(x, -1, 1))`, `exp(x).clamp(max)`."""

import torch

FORMS = {
    "acos(x.clamp(-1, 1)) at 1": (1.0, lambda x: x.clamp(-1, 1).acos()),
    "acos(x.clamp(-1 + 1e-6, 1 - 1e-6)) at 1": (1.0, lambda x: x.clamp(-1 + 1e-6, 1 - 1e-6).acos()),
    "exp(x).clamp(max=1e4) at 100": (100.0, lambda x: x.exp().clamp(max=1e4)),
    "exp(x.clamp(max=9)) at 100": (100.0, lambda x: x.clamp(max=9.0).exp()),
}
gradients = {}
for name, (start, form) in FORMS.items():
    x = torch.tensor(start, requires_grad=True)
    value = form(x)
    value.backward()
    gradients[name] = x.grad
    print(f"value and gradient, {name}: {value.item():.4g} {x.grad.item():.4g}")

first, second, third, fourth = (one.isfinite().item() for one in gradients.values())
assert (first, second, third, fourth) == (False, True, False, True)
