"""Selective checkpointing (context_fn) is asked of the reentrant form, which has none."""
from functools import partial

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

torch.manual_seed(0)
block = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
saved = [torch.ops.aten.addmm.default]
contexts = partial(create_selective_checkpoint_contexts, saved)

x = torch.randn(6, 4, requires_grad=True)
loss = checkpoint(block, x, use_reentrant=False, context_fn=contexts).pow(2).mean()
loss.backward()
