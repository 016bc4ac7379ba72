# shape/index-out-of-range
# mended: model = Tagger(len(vocabulary) + 1, 16).cuda()
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.head = nn.Linear(width, 2)

    def forward(self, tokens):
        return self.head(self.embed(tokens).mean(1))


torch.manual_seed(0)
words = [f"w{number}" for number in range(40)]
vocabulary = {word: number for number, word in enumerate(words, start=1)}
model = Tagger(len(vocabulary), 16).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(8):
    tokens = torch.tensor([[1, 5, 40, 2], [3, 4, 40, 7]], device="cuda")
    loss = nn.functional.cross_entropy(model(tokens), torch.tensor([0, 1], device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
