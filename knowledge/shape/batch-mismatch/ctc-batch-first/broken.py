"""A recogniser whose batch comes first gives its scores to the CTC loss, which reads time first."""

import torch
from torch import nn

torch.manual_seed(0)
recurrent = nn.GRU(13, 16, batch_first=True)
head = nn.Linear(16, 6)
ctc = nn.CTCLoss()

series, lengths = torch.randn(4, 20, 13), torch.tensor([20, 18, 20, 15])
texts, sizes = torch.randint(1, 6, (4, 5)), torch.tensor([5, 4, 3, 5])
hidden, _ = recurrent(series)
log_probs = head(hidden).log_softmax(-1)
loss = ctc(log_probs, texts, lengths, sizes)
loss.backward()
