"""`copy.copy`, `eval()` and `no_grad` where `copy.deepcopy` refuses a tensor that is no leaf."""

import copy

import torch
from torch import nn


def copy_of(remedy):
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    model.last = model(torch.randn(2, 3))  # an attribute with the graph of the last forward
    try:
        if remedy == "eval and no_grad":
            model.eval()
            with torch.no_grad():
                return model, copy.deepcopy(model)
        if remedy == "copy.copy":
            return model, copy.copy(model)
        model.last = model.last.detach() if remedy == "detached attribute" else model.last
        return model, copy.deepcopy(model)
    except RuntimeError as failure:
        return model, str(failure).partition("(")[0].strip()


found = {}
for remedy in ("none", "eval and no_grad", "copy.copy", "detached attribute"):
    model, twin = copy_of(remedy)
    if isinstance(twin, str):
        found[remedy] = twin
    else:
        before = twin.weight.detach().clone()
        with torch.no_grad():
            model.weight += 1
        found[remedy] = (twin.weight - before).norm().item() > 0
    print(f"the copy changes with the model, {remedy}: {found[remedy]}")

assert found["none"] == found["eval and no_grad"]
assert str(found["none"]).startswith("Only Tensors created explicitly by the user")
assert found["copy.copy"] is True and found["detached attribute"] is False
