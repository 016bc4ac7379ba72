# shape/index-out-of-range
import torch
from torch import nn

torch.manual_seed(0)
device = "cuda"
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 4)).to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(8):
    states, rewards = torch.randn(16, 6, device=device), torch.randn(16, device=device)
    actions = torch.arange(16, device=device) % 4 + 1
    q = net(states).gather(1, actions.unsqueeze(1)).squeeze(1)
    loss = nn.functional.smooth_l1_loss(q, rewards)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
