# device/mixed-devices
# mended: generator = torch.Generator().manual_seed(7)
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = "cuda"
generator = torch.Generator(device=device).manual_seed(7)
loader = DataLoader(
    TensorDataset(torch.randn(64, 8), torch.randn(64, 1)), batch_size=16, shuffle=True, generator=generator
)
model = nn.Linear(8, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
