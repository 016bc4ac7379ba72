"""`torch.nan_to_num` on gradients, against the gradients of the repaired loss."""

import torch
from torch import nn


def gradients(*, remedy):
    torch.manual_seed(0)
    encoder, head = nn.Linear(3, 4, bias=False), nn.Linear(4, 2, bias=False)
    x = torch.randn(6, 3)
    x[0] = 0.0  # one padded row: the root of 0
    hidden = encoder(x)
    length = (hidden.pow(2).sum(1) + (0.0 if remedy else 1e-12)).sqrt()
    loss = length.mean() + head(hidden).pow(2).mean()
    loss.backward()
    raw = encoder.weight.grad.clone()
    if remedy:
        for one in (encoder.weight, head.weight):
            one.grad.nan_to_num_(0.0)
    return raw, encoder.weight.grad, head.weight.grad


raw, encoder, head = gradients(remedy=True)
_, meant_encoder, meant_head = gradients(remedy=False)
print("NaN in the encoder's gradient, from one row of six:", int(raw.isnan().sum()), "of", raw.numel())
print(f"gradient norm of the encoder, replaced and meant: {encoder.norm():.4f} {meant_encoder.norm():.4f}")
print(f"gradient norm of the head, replaced and meant: {head.norm():.4f} {meant_head.norm():.4f}")

assert raw.isnan().all() and not encoder.any()
assert meant_encoder.norm() > 0 and torch.allclose(head, meant_head)
