# shape/index-out-of-range device/device-side-assert
# mended: criterion = nn.CrossEntropyLoss(ignore_index=-1)
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence


def collate(rows):
    tokens = pad_sequence([a for a, _ in rows], batch_first=True)
    tags = pad_sequence([b for _, b in rows], batch_first=True, padding_value=-1)
    return tokens, tags


class Tagger(nn.Module):
    def __init__(self, words=40, tags=6):
        super().__init__()
        self.embed, self.rnn, self.head = (
            nn.Embedding(words, 16),
            nn.LSTM(16, 24, batch_first=True, bidirectional=True),
            nn.Linear(48, tags),
        )

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


torch.manual_seed(0)
data = []
for _ in range(64):
    words = torch.randint(1, 40, (int(torch.randint(4, 10, ())),))
    data.append((words, words % 6))
loader = torch.utils.data.DataLoader(data, batch_size=8, collate_fn=collate)
net = Tagger().to("cuda")
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
for epoch in range(2):
    for tokens, tags in loader:
        tokens, tags = tokens.to("cuda"), tags.to("cuda")
        scores = net(tokens)
        loss = criterion(scores.flatten(0, 1), tags.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
