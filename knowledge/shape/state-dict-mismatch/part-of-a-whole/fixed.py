"""The weights of a pretrained model are loaded into its encoder: their names begin with that part's."""

import torch
from torch import nn


class Pretrained(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.decoder = nn.Linear(8, 4)


torch.manual_seed(0)
saved = Pretrained().state_dict()
encoder, head = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 2)
encoder.load_state_dict({name.removeprefix("encoder."): value for name, value in saved.items() if name.startswith("encoder.")})
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
loss = head(encoder(torch.randn(8, 4))).pow(2).mean()
loss.backward()
optimizer.step()
