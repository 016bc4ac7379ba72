import torch
from torch import nn


def detach(state):
    if isinstance(state, dict):
        return {name: detach(value) for name, value in state.items()}
    if torch.is_tensor(state):
        return state.detach()
    return state


torch.manual_seed(0)
lower, upper, head = nn.LSTM(4, 8), nn.LSTM(8, 8), nn.Linear(8, 2)
parameters = [one for part in (lower, upper, head) for one in part.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
zeros = torch.zeros(1, 3, 8)
state = {"lower": (zeros, zeros), "upper": (zeros, zeros)}
for chunk in torch.randn(4, 5, 3, 4):
    hidden, first = lower(chunk, state["lower"])
    hidden, second = upper(hidden, state["upper"])
    loss = head(hidden).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    state = detach({"lower": first, "upper": second})
