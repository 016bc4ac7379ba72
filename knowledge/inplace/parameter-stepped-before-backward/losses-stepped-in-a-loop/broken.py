import torch
from torch import nn

torch.manual_seed(0)
critic, actor = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1)), nn.Linear(4, 2)
optimizers = {name: torch.optim.SGD(net.parameters(), lr=0.1) for name, net in (("critic", critic), ("actor", actor))}


def losses(state, action, target):
    return {
        "critic": nn.functional.mse_loss(critic(torch.cat([state, action], 1)), target),
        "actor": -critic(torch.cat([state, actor(state)], 1)).mean(),
    }


state, action, target = torch.randn(5, 4), torch.randn(5, 2), torch.randn(5, 1)
for name, loss in losses(state, action, target).items():
    optimizers[name].zero_grad()
    loss.backward()
    optimizers[name].step()
