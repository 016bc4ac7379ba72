"""Two ranks, a branch that is used in every second step: find_unused_parameters is right here. launch: torchrun"""

import torch
import torch.distributed as dist


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

    def forward(self, x, step):
        return self.first(x) if step % 2 else self.second(self.first(x))


dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(Net(), find_unused_parameters=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    optimizer.zero_grad()
    model(torch.randn(8, 4), step).square().mean().backward()
    optimizer.step()
dist.destroy_process_group()
