"""`use_reentrant=False` alone, where the checkpointed segment writes a saved tensor in place."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def gradients(mode, *, inplace):
    torch.manual_seed(0)
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)

    def segment(x):
        h = torch.exp(first(x))
        if inplace:
            h *= 2
        else:
            h = h * 2
        return second(h).tanh()

    x = torch.randn(3, 4, requires_grad=True)
    out = segment(x) if mode is None else checkpoint(segment, x, use_reentrant=mode)
    try:
        out.sum().backward()
    except RuntimeError as failure:
        return str(failure).partition(":")[0]
    return round(first.weight.grad.norm().item(), 4)


NAMES = {"no checkpointing": None, "use_reentrant=True": True, "use_reentrant=False": False}
found = {name: gradients(mode, inplace=True) for name, mode in NAMES.items()}
right = gradients(None, inplace=False)
for name, result in found.items():
    print(f"gradient norm, write in the segment, {name}: {result}")
print("gradient norm, written out of place:", right)
print("gradient norm, out of place, use_reentrant=False:", gradients(False, inplace=False))

assert found["no checkpointing"] == found["use_reentrant=True"]
assert found["no checkpointing"].endswith("modified by an inplace operation")
assert found["use_reentrant=False"] > 1.5 * right
