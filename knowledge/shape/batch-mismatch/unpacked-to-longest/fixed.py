"""Tags of a fixed length, and an LSTM whose output is unpacked only to the longest row of the batch."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(30, 8, padding_idx=0)
        self.lstm = nn.LSTM(8, 12, batch_first=True)
        self.tags = nn.Linear(12, 5)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.words(ids), lengths, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=ids.size(1))
        return self.tags(out)


lengths = torch.tensor([4, 7, 5, 6])
ids, tags = torch.zeros(4, 10, dtype=torch.long), torch.full((4, 10), -100)
for row, length in enumerate(lengths):
    ids[row, :length] = torch.randint(1, 30, (int(length),))
    tags[row, :length] = torch.randint(5, (int(length),))

model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(3):
    scores = model(ids, lengths)
    loss = F.cross_entropy(scores.reshape(-1, 5), tags.reshape(-1), ignore_index=-100)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
