"""`use_reentrant=True` or `determinism_check="none"` where the recomputed forward differs."""

import warnings

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

warnings.simplefilter("ignore")


def gradients(**options):
    torch.manual_seed(0)
    layer, calls = nn.Linear(4, 4), []

    def segment(x):
        calls.append(None)
        rows = 3 if len(calls) == 1 else 2  # as a draw of Python's own `random` in each pass
        return layer(x[:rows]).tanh().sum(0)

    x = torch.randn(3, 4, requires_grad=True)
    try:
        out = checkpoint(segment, x, **options) if options else segment(x)
        out.sum().backward()
    except RuntimeError as failure:
        return str(failure).partition("\n")[0]
    return round(layer.weight.grad.norm().item(), 4)


meant = gradients()
checked = gradients(use_reentrant=False)
unchecked = gradients(use_reentrant=False, determinism_check="none")
reentrant = gradients(use_reentrant=True)
print("gradient norm of the forward that made the loss:", meant)
print("use_reentrant=False:", checked)
print('determinism_check="none":', unchecked)
print("gradient norm, use_reentrant=True:", reentrant)

assert isinstance(checked, str) and isinstance(unchecked, str)
assert isinstance(reentrant, float) and abs(reentrant - meant) > 0.1 * meant
