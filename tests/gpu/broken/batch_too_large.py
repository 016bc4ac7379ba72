# device/out-of-memory
import torch
from torch import nn

torch.manual_seed(0)
torch.cuda.set_per_process_memory_fraction(0.012)  # as on a small card: about a gigabyte
model = nn.TransformerEncoder(
    nn.TransformerEncoderLayer(256, 4, batch_first=True), 4, enable_nested_tensor=False
).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for length in (64, 128, 4096):
    loss = model(torch.randn(16, length, 256, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
