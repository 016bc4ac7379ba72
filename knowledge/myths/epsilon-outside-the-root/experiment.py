"""An epsilon after the operation instead of inside: `sqrt(x) + eps`, `x / d + eps`, `log(x) + eps`."""

import torch

eps = 1e-8
FORMS = {
    "sqrt(x) + eps": lambda x: x.sqrt() + eps,
    "sqrt(x + eps)": lambda x: (x + eps).sqrt(),
    "log(x) + eps": lambda x: x.log() + eps,
    "log(x + eps)": lambda x: (x + eps).log(),
    "1 / x + eps": lambda x: 1 / x + eps,
    "1 / (x + eps)": lambda x: 1 / (x + eps),
}
finite = {}
for name, form in FORMS.items():
    weight = torch.zeros((), requires_grad=True)
    value = form(weight * 3)
    value.backward()
    finite[name] = bool(weight.grad.isfinite())
    print(f"value and gradient at 0, {name}: {value.item():.4g} {weight.grad.item():.4g}")

half = torch.zeros((), dtype=torch.float16) + torch.tensor(1e-8, dtype=torch.float16)
print("1e-8 in float16:", half.item())

assert [finite[name] for name in FORMS] == [False, True, False, True, False, True]
assert half.item() == 0.0
