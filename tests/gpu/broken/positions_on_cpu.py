# device/mixed-devices
# mended: places = torch.arange(tokens.size(1), device=tokens.device)
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(50, 16), nn.Embedding(32, 16)
        self.head = nn.Linear(16, 50)

    def forward(self, tokens):
        places = torch.arange(tokens.size(1))
        return self.head(self.words(tokens) + self.positions(places))


torch.manual_seed(0)
model = Encoder().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(8):
    tokens = torch.randint(50, (4, 12)).cuda()
    logits = model(tokens)
    loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
