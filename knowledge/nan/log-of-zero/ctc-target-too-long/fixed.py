"""A CTC target does not fit into its input: four equal labels need seven frames, the sample has three."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)

torch.manual_seed(0)
encoder = nn.Linear(20, 6)
criterion = nn.CTCLoss(zero_infinity=True)
frames = torch.randn(10, 2, 20)
input_lengths, target_lengths = torch.tensor([10, 3]), torch.tensor([4, 4])
targets = torch.tensor([[1, 2, 3, 4], [5, 5, 5, 5]])
log_probs = encoder(frames).log_softmax(-1)
loss = criterion(log_probs, targets, input_lengths, target_lengths)
loss.backward()
torch.optim.SGD(encoder.parameters(), lr=0.1).step()
