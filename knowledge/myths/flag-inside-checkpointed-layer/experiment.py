"""`hidden.requires_grad_(True)` inside a reentrantly checkpointed layer whose input does not require grad."""

import warnings

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

warnings.simplefilter("ignore")


def train(remedy):
    torch.manual_seed(0)
    adapter, x = nn.Linear(4, 4), torch.randn(2, 4)

    def segment(hidden):
        hidden = hidden.requires_grad_(True) if remedy == "flag inside" else hidden
        return adapter(hidden)

    if remedy == "flag on the input":
        x.requires_grad_(True)
    loss = checkpoint(segment, x, use_reentrant=remedy != "use_reentrant=False").sum()
    try:
        loss.backward()
    except RuntimeError as failure:
        return str(failure)
    return round(adapter.weight.grad.norm().item(), 4)


found = {name: train(name) for name in ("none", "flag inside", "flag on the input", "use_reentrant=False")}
for name, result in found.items():
    print(f"gradient norm of the adapter, {name}: {result}")

assert "does not require grad" in found["none"]
assert "does not require grad" in str(found["flag inside"])
assert found["flag on the input"] == found["use_reentrant=False"] > 0
