"""A helper unscales and clips with each batch's backward, and steps once for two of them."""
import torch
from torch import nn


class Precision:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def backward(self, loss):
        self.scaler.scale(loss).backward()

    def update(self):
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()


torch.manual_seed(0)
model = nn.Linear(4, 1)
precision = Precision(model, torch.optim.SGD(model.parameters(), lr=0.1))
for index in range(2):
    precision.backward(model(torch.randn(8, 4)).pow(2).mean() / 2)
    if index == 1:
        precision.update()
