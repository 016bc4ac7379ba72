"""A compiled float16 model under a GradScaler and anomaly mode, as a notebook on a GPU without bfloat16 trains it."""

import torch
from torch import nn

DIM = 64


class RMSNorm(nn.Module):
    """Gemma's: the weight is an offset from one, and large in a trained model."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((DIM,), 30.0))

    def forward(self, x):
        return x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6).to(x.dtype) * (1 + self.weight)


def main():
    torch.manual_seed(0)
    dtype = torch.float16  # a T4 has no bfloat16, in which Gemma was trained
    print(f"loading in {dtype}, as a GPU without bfloat16 is given this model")
    model = nn.Sequential(RMSNorm(), nn.Linear(DIM, DIM), RMSNorm(), nn.Linear(DIM, 8)).to(dtype)
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
    with torch.autograd.detect_anomaly():
        for step in range(3):
            x, target = torch.randn(4, DIM, dtype=dtype), torch.randint(0, 8, (4,))
            loss = nn.functional.cross_entropy(compiled(x).float(), target)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
