"""A bigger loss scale in float16: against underflow of the gradients, and against overflow."""

import torch

SCALES = (1.0, 2.0**8, 2.0**16, 2.0**24)


def gradient(slope, scale):
    weight = torch.ones((), requires_grad=True)
    (weight.half().float() * slope * scale).backward()
    return weight.grad.item() / scale


tiny = [gradient(1e-9, scale) for scale in SCALES]
large = [gradient(10.0, scale) for scale in SCALES]
print("scales:", [f"2**{scale.hex().partition('p')[2]}" for scale in SCALES])
print("gradient that is 1e-9:", [f"{one:.3g}" for one in tiny])
print("gradient that is 10:", [f"{one:.3g}" for one in large])
x = torch.full((4,), 300.0).half()
print("loss whose forward overflows, before any scale:", x.pow(2).float().mean().item())

assert tiny[0] == 0 and abs(tiny[2] - 1e-9) < 1e-11
assert large[0] == 10 and large[2] == float("inf")
assert x.pow(2).float().mean().isinf()
