"""`torch.where` and a 0/1 mask round an operation whose slope is infinite."""

import torch

zero = torch.zeros(())
FORMS = {
    "torch.where on the result": lambda x: torch.where(x > 0, x.sqrt(), zero),
    "multiplied by a mask": lambda x: x.sqrt() * (x > 0),
    "masked_fill on the result": lambda x: x.sqrt().masked_fill(x == 0, 0.0),
    "torch.where on the argument too": lambda x: torch.where(x > 0, torch.where(x > 0, x, 1.0).sqrt(), zero),
}
found = {}
for name, form in FORMS.items():
    x = torch.tensor([4.0, 0.0, 1.0], requires_grad=True)
    value = form(x)
    value.sum().backward()
    found[name] = x.grad.tolist()
    print(f"value and gradient, {name}: {value.tolist()} {found[name]}")

*wrong, right = found.values()
assert all(gradient[1] != gradient[1] for gradient in wrong)
assert right == [0.25, 0.0, 0.5]
