"""A communication hook that reduces gradients in bfloat16 before DDP hands them back."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(0)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def reduce_in_bfloat16(group, bucket):
    small = bucket.buffer().bfloat16()
    future = dist.all_reduce(small, async_op=True).get_future()
    return future.then(lambda done: bucket.buffer().copy_(done.value()[0]))


model = DistributedDataParallel(nn.Linear(8, 1))
model.register_comm_hook(None, reduce_in_bfloat16)
model(torch.randn(4, 8)).square().mean().backward()
dist.destroy_process_group()
