# nan/low-precision-overflow
# mended: weights = weights.masked_fill(padding.unsqueeze(1), torch.finfo(weights.dtype).min).softmax(-1)
import torch
from torch import nn

HIDDEN = -1e9


class Reader(nn.Module):
    def __init__(self, words=50, width=16):
        super().__init__()
        self.words, self.query = nn.Embedding(words, width), nn.Linear(width, width)
        self.topic = nn.Linear(width, 4)

    def forward(self, tokens, padding):
        x = self.words(tokens)
        weights = self.query(x) @ x.transpose(1, 2) / 4
        weights = weights.masked_fill(padding.unsqueeze(1), HIDDEN).softmax(-1)
        return self.topic((weights @ x).mean(1))


torch.manual_seed(0)
reader = Reader().cuda()
optimizer = torch.optim.Adam(reader.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda", init_scale=256.0)
for step in range(8):
    tokens, topics = torch.randint(50, (8, 12), device="cuda"), torch.randint(4, (8,), device="cuda")
    padding = torch.arange(12, device="cuda") >= torch.randint(4, 13, (8, 1), device="cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        loss = nn.functional.cross_entropy(reader(tokens, padding), topics)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
