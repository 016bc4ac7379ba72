"""`.float()` after `argmax`, a comparison or `round`, and `requires_grad_(True)` on it, against the soft form."""

import torch
from torch import nn


def accuracy(logits, labels):
    return (logits.argmax(1) == labels).float().mean()


LOSSES = {
    ".float()": lambda logits, labels: 1 - accuracy(logits, labels),
    ".float() and requires_grad_(True)": lambda logits, labels: (1 - accuracy(logits, labels)).requires_grad_(True),
    "round()": lambda logits, labels: (logits.softmax(1).round() - nn.functional.one_hot(labels, 3)).abs().mean(),
    "cross_entropy": nn.functional.cross_entropy,
}
found = {}
for name, loss_of in LOSSES.items():
    torch.manual_seed(0)
    model, x, labels = nn.Linear(4, 3), torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
    try:
        loss_of(model(x), labels).backward()
        gradient = model.weight.grad
        found[name] = None if gradient is None else round(gradient.norm().item(), 4)
    except RuntimeError as failure:
        found[name] = str(failure)
    print(f"gradient norm, {name}: {found[name]}")

hard, flagged, rounded, soft = found.values()
assert "does not require grad" in hard and flagged is None
assert rounded == 0.0 and soft > 0
