import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(0)
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29611")
dist.init_process_group("gloo", rank=0, world_size=1)

teacher = nn.Linear(8, 3).requires_grad_(False)
student = nn.Linear(8, 3)
teacher = DistributedDataParallel(teacher)
student = DistributedDataParallel(student)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)

x = torch.randn(4, 8)
loss = nn.functional.mse_loss(student(x), teacher(x))
loss.backward()
optimizer.step()
dist.destroy_process_group()
