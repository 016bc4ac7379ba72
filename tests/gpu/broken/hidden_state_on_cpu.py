# device/mixed-devices
# mended: h0 = torch.zeros(1, x.size(0), 16, device=x.device)
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 16, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        h0 = torch.zeros(1, x.size(0), 16)
        out, _ = self.rnn(x, h0)
        return self.head(out)


torch.manual_seed(0)
model = Tagger().to("cuda")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(8):
    x, y = torch.randn(4, 5, 8, device="cuda"), torch.randint(4, (4, 5), device="cuda")
    loss = nn.functional.cross_entropy(model(x).transpose(1, 2), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
