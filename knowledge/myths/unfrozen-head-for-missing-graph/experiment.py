"""An unfrozen head (`modules_to_save`) to silence "does not require grad" under reentrant checkpointing."""

import warnings

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

warnings.simplefilter("ignore")


def gradients(*, head, use_reentrant):
    torch.manual_seed(0)
    adapter, classifier = nn.Linear(4, 4), nn.Linear(4, 2).requires_grad_(head)
    hidden = checkpoint(adapter, torch.randn(3, 4), use_reentrant=use_reentrant)
    loss = classifier(hidden).pow(2).mean()
    try:
        loss.backward()
    except RuntimeError as failure:
        return str(failure), None
    norms = [None if one.weight.grad is None else round(one.weight.grad.norm().item(), 4) for one in (adapter, classifier)]
    return "none", norms


error, _ = gradients(head=False, use_reentrant=True)
silent, remedy = gradients(head=True, use_reentrant=True)
_, meant = gradients(head=True, use_reentrant=False)
print("error, frozen head:", error)
print("error, unfrozen head:", silent)
print("gradient norms of adapter and head, unfrozen head:", remedy)
print("gradient norms of adapter and head, use_reentrant=False:", meant)

assert "does not require grad" in error and silent == "none"
assert remedy[0] is None and remedy[1] > 0 and meant[0] > 0
