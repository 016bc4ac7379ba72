"""`load_state_dict(strict=False)` where the keys carry a wrapper's prefix, or a size differs."""

import torch
from torch import nn

torch.manual_seed(0)
trained = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
saved = {f"module.{name}": value for name, value in trained.state_dict().items()}
x = torch.randn(5, 3)


def distance(state, **options):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    fresh = [one.clone() for one in model.parameters()]
    try:
        model.load_state_dict(state, **options)
    except RuntimeError as failure:
        return str(failure).partition("\n")[0]
    loaded = sum(not torch.equal(one, other) for one, other in zip(fresh, model.parameters()))
    return loaded, round((model(x) - trained(x)).norm().item(), 4)


plain = distance(saved)
remedy = distance(saved, strict=False)
meant = distance({name.removeprefix("module."): value for name, value in saved.items()})
other_size = distance({**trained.state_dict(), "2.weight": torch.randn(5, 4)}, strict=False)
print("error:", plain)
print("parameters loaded of 4, distance to the trained model's output, strict=False:", *remedy)
print("parameters loaded of 4, distance to the trained model's output, prefix removed:", *meant)
print("a size that differs, strict=False:", other_size)

assert plain.startswith("Error(s) in loading state_dict") and other_size.startswith("Error(s) in loading state_dict")
assert remedy[0] == 0 and remedy[1] > 0.1 and meant == (4, 0.0)
