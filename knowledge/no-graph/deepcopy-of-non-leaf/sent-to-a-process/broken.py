import torch
import torch.multiprocessing as mp
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 3)
receiver, sender = mp.Pipe(duplex=False)
logits = model(torch.randn(4, 8))
loss = logits.square().mean()
loss.backward()
sender.send(logits)
received = receiver.recv()
