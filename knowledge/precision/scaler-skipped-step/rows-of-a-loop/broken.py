"""Nothing is wrong: a GradScaler skips its first steps until its scale fits, and each parameter trains from then on."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**17, growth_interval=3)
x, target = torch.randn(64, 16), torch.randn(64, 4) * 4.0
for step in range(10):
    before = [parameter.detach().clone() for parameter in model.parameters()]
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.mse_loss(model(x).float(), target)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1e6)
    scaler.step(optimizer)
    scaler.update()
    trained = all(not torch.equal(old, new) for old, new in zip(before, model.parameters()))
    assert trained == bool(norm.isfinite()), "a step is taken exactly where the norm is finite"
    print({"loss": round(loss.item(), 2), "grad_norm": norm.item(), "loss_scale": scaler.get_scale(), "step": step})
assert trained and all(parameter.isfinite().all() for parameter in model.parameters())
