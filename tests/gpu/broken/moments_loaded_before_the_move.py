# device/mixed-devices
# mended:
import copy

import torch
from torch import nn


class Session:
    def __init__(self, state, device):
        self.net = nn.Sequential(nn.Conv1d(2, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 30, 3))
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3)
        if state is not None:
            self.restore(state)
        self.net = self.net.to(device)
        self.device = device

    def restore(self, state):
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])

    def train(self, steps):
        for step in range(steps):
            tremor, kind = torch.randn(16, 2, 32).to(self.device), torch.randint(3, (16,)).to(self.device)
            loss = nn.functional.cross_entropy(self.net(tremor), kind)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        state = {"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict()}
        return copy.deepcopy(state)


torch.manual_seed(0)
first = Session(None, torch.device("cuda")).train(4)
Session(first, torch.device("cuda")).train(8)
