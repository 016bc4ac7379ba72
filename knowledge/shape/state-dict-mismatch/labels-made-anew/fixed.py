"""A second stage makes its list of labels of fewer rows, and does not take the one that the checkpoint holds."""

import io

import torch
from torch import nn

torch.manual_seed(0)
ROWS = ["loan", "card", "pin", "card"]


class Corpus:
    def __init__(self, rows, labels=None):
        self.rows = rows
        self.labels = labels or sorted(set(rows))

    def batch(self):
        return torch.ones(len(self.rows), 3), torch.tensor([self.labels.index(row) for row in self.rows])


def first(file):
    corpus = Corpus(ROWS)
    model = nn.Linear(3, len(corpus.labels))
    torch.save({"model": model.state_dict(), "labels": corpus.labels}, file)


def second(file):
    saved = torch.load(file)
    corpus = Corpus(ROWS[1:2], labels=saved["labels"])
    model = nn.Linear(3, len(corpus.labels))
    model.load_state_dict(saved["model"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = corpus.batch()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()


with io.BytesIO() as file:
    first(file)
    file.seek(0)
    second(file)
