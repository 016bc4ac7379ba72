"""A part of the model is frozen from the second epoch on, and the scaler still steps its optimizer."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.ModuleDict({"encoder": nn.Linear(4, 8), "decoder": nn.Linear(8, 1)})
optimizers = [torch.optim.SGD(part.parameters(), lr=0.1) for part in model.values()]
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

for epoch in range(2):
    if epoch == 1:
        model["encoder"].requires_grad_(False)
    for batch in torch.randn(3, 16, 4):
        loss = model["decoder"](model["encoder"](batch).tanh()).pow(2).mean()
        for optimizer in optimizers:
            optimizer.zero_grad()
        scaler.scale(loss).backward()
        for optimizer in optimizers:
            if any(p.grad is not None for group in optimizer.param_groups for p in group["params"]):
                scaler.step(optimizer)
        scaler.update()
