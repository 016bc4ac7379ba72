import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR


def fit(state, start, stop):
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if state is not None:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    scheduler = LambdaLR(optimizer, lambda step: 0.9**step, last_epoch=start - 1)
    for x in torch.rand(stop - start, 8, 4):
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}


state = fit(None, 0, 3)
fit(state, 3, 6)
