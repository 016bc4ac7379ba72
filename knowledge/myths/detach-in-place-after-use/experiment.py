"""`hidden.detach_()` and `hidden.zero_()` on a carried state, against rebinding."""

import torch
from torch import nn

RESETS = {
    "none": lambda hidden: hidden,
    "hidden.data.zero_()": lambda hidden: (hidden.data.zero_(), hidden)[1],
    "hidden.zero_()": lambda hidden: hidden.zero_(),
    "hidden.detach_() before the backward": None,
    "hidden.detach_()": lambda hidden: hidden.detach_(),
    "hidden = hidden.detach()": lambda hidden: hidden.detach(),
}
found = {}
for name, reset in RESETS.items():
    torch.manual_seed(0)
    cell, hidden = nn.RNNCell(3, 4), torch.zeros(2, 4)
    try:
        for _ in range(3):
            hidden = cell(torch.randn(2, 3), hidden)
            loss = hidden.pow(2).sum()
            if reset is None:
                hidden.detach_()
            loss.backward()
            hidden = reset(hidden) if reset else hidden
        found[name] = "none"
    except RuntimeError as failure:
        found[name] = str(failure).partition(":")[0].partition("(")[0].strip()
    print(f"error, {name}: {found[name]}")

again = "Trying to backward through the graph a second time"
assert found["none"] == found["hidden.data.zero_()"] == found["hidden.zero_()"] == again
assert found["hidden.detach_() before the backward"] not in ("none", again)
assert found["hidden.detach_()"] == found["hidden = hidden.detach()"] == "none"
