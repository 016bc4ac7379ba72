# a whole step captured in a CUDA graph and replayed
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
x, y = torch.randn(16, 32, device="cuda"), torch.randn(16, 1, device="cuda")
stream = torch.cuda.Stream()
stream.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(stream):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(stream)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
for _ in range(20):
    x.copy_(torch.randn(16, 32, device="cuda"))
    graph.replay()
print(loss.item())
