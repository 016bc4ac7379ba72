"""`output.requires_grad_(True)` inside a checkpointed segment that runs under `no_grad`."""

import warnings

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

warnings.simplefilter("ignore")


def gradients(form):
    torch.manual_seed(0)
    stem, tower, head = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 1)

    def segment(x):
        with torch.set_grad_enabled(form == "grad mode on"):
            output = torch.tanh(tower(x))
        return output.requires_grad_(True) if form == "flag on the output" else output

    loss = head(checkpoint(segment, stem(torch.randn(5, 3)), use_reentrant=True)).pow(2).mean()
    try:
        loss.backward()
    except RuntimeError as failure:
        return str(failure).partition(",")[0]
    layers = (stem, tower, head)
    return [None if one.weight.grad is None else round(one.weight.grad.norm().item(), 4) for one in layers]


found = {form: gradients(form) for form in ("none", "flag on the output", "grad mode on")}
for form, result in found.items():
    print(f"gradient norms of what comes before, of the segment and of the head, {form}: {result}")

flag, meant = found["flag on the output"], found["grad mode on"]
assert found["none"] == "none of output has requires_grad=True"
assert all(norm is None or norm == 0 for norm in flag[:2]) and flag[2] == meant[2]
assert all(norm > 0 for norm in meant)
