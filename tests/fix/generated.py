"""Random small models, each written twice: out of place as meant, and with in-place writes that break autograd.

The two compute the same values; where a write destroys what a backward needs, the second one raises.
"""

from __future__ import annotations

import random
from typing import NamedTuple

_UNARY = (
    "torch.tanh({x})",
    "torch.sigmoid({x})",
    "torch.relu({x})",
    "{x}.exp()",
    "F.softplus({x})",
    "{x}.square()",
    "torch.sin({x})",
)
_LAYERS = ("self.fc{i}({x})", "self.act(self.fc{i}({x}))", "F.gelu(self.fc{i}({x}))")
_BINARY = ("{x} * {y}", "{x} + {y}", "{x} - 0.5 * {y}", "{x} * torch.sigmoid({y})")
_WIDTH = 4


class Pair(NamedTuple):
    """The program as meant and the one with in-place writes, both the source of a module that computes `grads`."""

    meant: str
    written: str


class _Write(NamedTuple):
    """One update of a variable: how it is meant, and how it is written in place."""

    meant: tuple[str, ...]
    written: tuple[str, ...]


def make_pair(rng: random.Random) -> Pair:
    """A model of five to twelve statements with one to three in-place writes."""
    meant: list[str] = []
    written: list[str] = []
    names = ["x"]
    layers = 0
    writes = rng.randrange(1, 4)
    for number in range(rng.randrange(5, 13)):
        kind = rng.random()
        if writes and number > 1 and len(names) > 1 and kind < 0.45:
            update = _update(rng, rng.choice(names[1:]), rng.choice(names), layers)
            layers += 1
            writes -= 1
            meant += update.meant
            written += update.written
            continue
        name = f"h{number}"
        if kind < 0.7 or number == 0:
            value = rng.choice(_LAYERS).format(i=layers, x=rng.choice(names))
            layers += 1
        elif kind < 0.88 or len(names) < 2:
            value = rng.choice(_UNARY).format(x=rng.choice(names))
        else:
            value = rng.choice(_BINARY).format(x=rng.choice(names), y=rng.choice(names))
        meant.append(f"{name} = {value}")
        written.append(f"{name} = {value}")
        names.append(name)
    result = "return " + " + ".join(f"{name}.mean()" for name in names[1:])
    return Pair(_module([*meant, result], layers), _module([*written, result], layers))


def _update(rng: random.Random, x: str, y: str, layer: int) -> _Write:
    """An update of `x` by a value of `y`."""
    value = rng.choice((f"{y}", f"self.fc{layer}({y})", f"torch.tanh({y})", "0.1"))
    kind = rng.randrange(7)
    if kind == 0:
        return _Write((f"{x} = {x} + {value}",), (f"{x} += {value}",))
    if kind == 1:
        return _Write((f"{x} = {x} * ({value} + 0.5)",), (f"{x} *= {value} + 0.5",))
    if kind == 2:
        return _Write((f"{x} = {x} - {value}",), (f"{x} -= {value}",))
    if kind == 3:
        method = rng.choice(("relu", "tanh", "sigmoid"))
        return _Write((f"{x} = {x}.{method}()",), (f"{x}.{method}_()",))
    if kind == 4:
        return _Write((f"{x} = {x}.add({value})",), (f"{x}.add_({value})",))
    if kind == 5:
        function = rng.choice(("F.relu", "F.leaky_relu", "F.elu"))
        return _Write((f"{x} = {function}({x})",), (f"{x} = {function}({x}, inplace=True)",))
    part = rng.choice((":, 0", "0", ":, 1:3", "..., -1"))
    return _Write((f"{x} = {x}.clone()", f"{x}[{part}] = 0.5"), (f"{x}[{part}] = 0.5",))


def _module(statements: list[str], layers: int) -> str:
    made = "".join(f"        self.fc{i} = nn.Linear({_WIDTH}, {_WIDTH})\n" for i in range(layers))
    body = "".join(f"        {one}\n" for one in statements)
    return f"""import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU()
{made}
    def forward(self, x):
{body}

torch.manual_seed(0)
model = Net().double()
x = torch.randn(3, {_WIDTH}, dtype=torch.double)
loss = model(x)
loss.backward()
grads = {{name: parameter.grad for name, parameter in model.named_parameters()}}
"""
