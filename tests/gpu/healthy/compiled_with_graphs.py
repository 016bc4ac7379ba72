# torch.compile with CUDA graphs, fused AdamW, bfloat16
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 4)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
fast = torch.compile(model, mode="reduce-overhead")
for step in range(12):
    torch.compiler.cudagraph_mark_step_begin()
    x, y = torch.randn(16, 32, device="cuda"), torch.randint(4, (16,), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(fast(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
