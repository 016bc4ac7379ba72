# device/mixed-devices
# mended: packed = pack_padded_sequence(self.embed(tokens), lengths.cpu(), batch_first=True, enforce_sorted=False)
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16, padding_idx=0)
        self.rnn = nn.GRU(16, 32, batch_first=True)
        self.head = nn.Linear(32, 3)

    def forward(self, tokens):
        lengths = (tokens != 0).sum(1)
        packed = pack_padded_sequence(self.embed(tokens), lengths, batch_first=True, enforce_sorted=False)
        _, hidden = self.rnn(packed)
        return self.head(hidden[-1])


torch.manual_seed(0)
device = torch.device("cuda")
net = Tagger().to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(8):
    texts = [torch.randint(1, 50, (int(torch.randint(3, 12, ())),)) for _ in range(16)]
    tokens = pad_sequence(texts, batch_first=True).to(device)
    labels = torch.randint(3, (16,), device=device)
    loss = nn.functional.cross_entropy(net(tokens), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
