"""A recurrent layer that reads both ways gives twice its hidden size, and the head takes it once."""

import torch
from torch import nn


class Tagger(nn.Module):
    """A tag for each word of a sentence."""

    def __init__(self, words, hidden, classes):
        super().__init__()
        self.embed = nn.Embedding(words, 12)
        self.rnn = nn.LSTM(12, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(hidden * 2, classes)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


torch.manual_seed(0)
model = Tagger(30, 10, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
ids, tags = torch.randint(0, 30, (8, 5)), torch.randint(0, 4, (8, 5))
loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), tags.flatten())
loss.backward()
optimizer.step()
