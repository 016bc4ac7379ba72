"""`masked_fill_`, `x[mask] = value` or a write to one row of an expanded mask, where `+=` is refused."""

import warnings

import torch

warnings.simplefilter("ignore")  # masked_fill_ on expanded tensors is deprecated
padding = torch.tensor([[False, False, True], [False, False, False]])
low = torch.finfo().min

WRITES = {
    "+=": lambda bias: bias.add_(padding * low),
    "masked_fill_": lambda bias: bias.masked_fill_(padding, low),
    "x[mask] = value": lambda bias: (bias.__setitem__(padding, low), bias)[1],
    "x[0].masked_fill_": lambda bias: (bias[0].masked_fill_(padding[0], low), bias)[1],
    "masked_fill": lambda bias: bias.masked_fill(padding, low),
    "clone, masked_fill_": lambda bias: bias.clone().masked_fill_(padding, low),
}


def gradient(write, *, requires_grad=False):
    scores = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], requires_grad=True)
    bias, stage = torch.zeros(1, 3, requires_grad=requires_grad) * 1, "forward"
    try:
        probs = torch.softmax(scores + write(bias.expand(2, 3)), -1)
        stage = "backward"
        (probs * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    except RuntimeError as failure:
        return f"{stage}: {str(failure).partition(':')[0]}"
    return [round(one, 4) for one in scores.grad[1].tolist()]


found = {name: gradient(write) for name, write in WRITES.items()}
for name, result in found.items():
    print(f"gradient of the row that has no padding, {name}: {result}")
refused = gradient(WRITES["masked_fill_"], requires_grad=True)
print("masked_fill_ where the mask itself requires grad:", refused)

assert (found["+="], refused) == ("forward: unsupported operation", "backward: unsupported operation")
right = found["masked_fill"]
assert right == found["clone, masked_fill_"] and right[2] > 0.1
assert all(found[name][2] == 0.0 for name in ("masked_fill_", "x[mask] = value", "x[0].masked_fill_"))
