"""accelerate with gradient accumulation. needs: accelerate"""

import accelerate
import torch

accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
model = torch.nn.Linear(4, 1)
data = torch.utils.data.DataLoader(torch.randn(64, 4), batch_size=4)
model, optimizer, data = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), data)
for batch in data:
    with accelerator.accumulate(model):
        accelerator.backward(model(batch).square().mean())
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
