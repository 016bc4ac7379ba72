"""`retain_graph=True` beside `hidden.detach()` on a recurrent state that is carried across steps."""

import torch
from torch import nn


def count_nodes(tensor):
    seen, stack = set(), [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack.extend(parent for parent, _ in node.next_functions)
    return len(seen)


def train(*, detach, lr):
    torch.manual_seed(0)
    cell, hidden = nn.RNNCell(3, 4), torch.zeros(2, 4)
    optimizer = torch.optim.SGD(cell.parameters(), lr=lr)
    norms, nodes = [], []
    for _ in range(3):
        hidden = cell(torch.randn(2, 3), hidden.detach() if detach else hidden)
        loss = hidden.pow(2).sum()
        optimizer.zero_grad()
        nodes.append(count_nodes(loss))
        loss.backward(retain_graph=not detach)
        norms.append(cell.weight_hh.grad.norm().item())
        if lr:
            optimizer.step()
    return norms, nodes


meant, meant_nodes = train(detach=True, lr=0.0)
remedy, remedy_nodes = train(detach=False, lr=0.0)
print("graph nodes a step, detached:", meant_nodes)
print("graph nodes a step, retain_graph=True:", remedy_nodes)
print("gradient norms, detached:", [round(norm, 4) for norm in meant])
print("gradient norms, retain_graph=True:", [round(norm, 4) for norm in remedy])
try:
    train(detach=False, lr=0.1)
    error = "none"
except RuntimeError as failure:
    error = str(failure).partition(":")[0]
print("with an optimizer that moves the weights:", error)

assert meant_nodes[0] == meant_nodes[1] == meant_nodes[2]
assert remedy_nodes[0] < remedy_nodes[1] < remedy_nodes[2]
assert abs(remedy[2] - meant[2]) > 0.1 * meant[2]
assert error.endswith("modified by an inplace operation")
