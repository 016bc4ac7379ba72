"""A text of 520 tokens meets a position table of 512."""

import torch
from torch import nn

torch.manual_seed(0)


class Embed(nn.Module):
    def __init__(self, vocabulary=50, longest=512, width=8):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.zeros(1, longest, width))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        return self.head(self.token(ids) + self.position[:, : ids.shape[1]])


ids = torch.randint(50, (2, 520))[:, :512]
model = Embed()
logits = model(ids)
nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten()).backward()
