"""`detach()` on the recurrent state inside the sequence, and between sequences."""

import torch
from torch import nn


def gradients(*, remedy):
    torch.manual_seed(0)
    cell, head = nn.RNNCell(3, 4), nn.Linear(4, 1)
    x, state = torch.randn(6, 2, 3, requires_grad=True), torch.zeros(2, 4)
    for step in x:
        state = cell(step, state.detach() if remedy else state)
    head(state).pow(2).mean().backward()
    return [round(one.norm().item(), 4) for one in x.grad], cell.weight_ih.grad


remedy, cut = gradients(remedy=True)
meant, whole = gradients(remedy=False)
print("gradient norm of the input of each step, detached:", remedy)
print("gradient norm of the input of each step, meant:", meant)
print(f"gradient norm of the cell, detached and meant: {cut.norm():.4f} {whole.norm():.4f}")

assert remedy[:-1] == [0.0] * 5 and remedy[-1] == meant[-1]
assert all(norm > 0 for norm in meant) and not torch.allclose(cut, whole)
