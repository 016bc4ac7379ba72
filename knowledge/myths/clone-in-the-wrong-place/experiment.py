"""`clone()` after the in-place write, of its result, or of the saved tensor before the write."""

import torch


def clone_after(h):
    h += 1
    return h.clone()


def clone_of_result(h):
    h = h.add_(1).clone()
    return h


def clone_before(h):
    h = h.clone()
    h += 1
    return h


found = {}
for write in (clone_after, clone_of_result, clone_before):
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    try:
        write(torch.tanh(x)).sum().backward()
        found[write.__name__] = [round(one, 4) for one in x.grad.tolist()]
    except RuntimeError as failure:
        found[write.__name__] = str(failure).partition(":")[0]
    print(f"gradient, {write.__name__}: {found[write.__name__]}")
x = torch.tensor([0.5, 1.0], requires_grad=True)
(torch.tanh(x) + 1).sum().backward()
meant = [round(one, 4) for one in x.grad.tolist()]
print("gradient, out of place:", meant)

assert found["clone_after"] == found["clone_of_result"]
assert found["clone_after"].endswith("modified by an inplace operation")
assert found["clone_before"] == meant
