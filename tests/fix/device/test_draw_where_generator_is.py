"""A draw with a generator of the CPU is made there and moved; one that may need no move, or would lose its leaf, stays."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.mending import run
from tests.fix.rewriting import changed_lines, rewritten

REFUSED = "Expected a 'cuda' device type for generator but found 'cpu'"
HEAD = "import torch\n\n"
SAMPLER = HEAD + (
    "class Sampler:\n    def __init__(self, seed):\n        self.stream = torch.Generator()\n        self.stream.manual_seed(seed)\n\n"
    "    def __call__(self, mean, deviation):\n        noise = {draw}\n        return mean + noise * deviation\n\n"
    "    def jitter(self, x):\n        return x + 0.1 * torch.rand(x.shape, generator=self.stream, device=x.device)\n\n"
    "out = Sampler(3)(torch.zeros(4), torch.ones(4))\n"
)
GPU = "[4, 8] float32 on cuda"
JITTER = "return x + 0.1 * torch.rand(x.shape, generator=self.stream).to(x.device)"
MOVED = {
    "of an object": (
        SAMPLER.format(draw="torch.randn(mean.shape, generator=self.stream, device=mean.device)"), "noise =", {},
        ["noise = torch.randn(mean.shape, generator=self.stream).to(mean.device)", JITTER],
    ),
    "like another tensor": (
        SAMPLER.format(draw="torch.randn_like(mean, generator=self.stream)"), "noise =", {},
        ['noise = torch.randn_like(mean, generator=self.stream, device="cpu").to(mean.device)', JITTER],
    ),
    "into a new tensor": (
        SAMPLER.format(draw="torch.empty_like(mean).normal_(generator=self.stream)"), "noise =", {},
        ['noise = torch.empty_like(mean, device="cpu").normal_(generator=self.stream).to(mean.device)', JITTER],
    ),
    "into a new tensor of a device": (
        SAMPLER.format(draw="torch.empty(4, device=DEVICE).uniform_(-1, 1, generator=self.stream)"), "noise =", {},
        ["noise = torch.empty(4).uniform_(-1, 1, generator=self.stream).to(DEVICE)", JITTER],
    ),
    "into a tensor that is there": (
        HEAD + 'def fill(noise, draws):\n    noise.normal_(0.0, 0.5, generator=draws)\n', "noise.normal_", {"tensors": {"noise": GPU}},
        ['noise.copy_(torch.empty_like(noise, device="cpu").normal_(0.0, 0.5, generator=draws))'],
    ),
    "of several arguments, the device first": (
        HEAD + 'def drop(x, draws):\n    keep = torch.randint(0, 2, device="cuda", size=(4, 8), generator=draws)\n    return x * keep\n', "keep =", {},
        ['keep = torch.randint(0, 2, size=(4, 8), generator=draws).to("cuda")'],
    ),
    "an order": (
        HEAD + "def mix(x, draws):\n    return x[torch.randperm(len(x), generator=draws, device=x.device)]\n", "return x", {},
        ["return x[torch.randperm(len(x), generator=draws).to(x.device)]"],
    ),
    "by probabilities": (
        HEAD + "def pick(scores, draws):\n    return torch.multinomial(scores, 2, generator=draws)\n", "return torch", {"tensors": {"scores": GPU}},
        ["return torch.multinomial(scores.cpu(), 2, generator=draws).to(scores.device)"],
    ),
    "by probabilities of a tensor's method": (
        HEAD + "def pick(keep, draws):\n    return keep.bernoulli(generator=draws)\n", "return keep", {"tensors": {"keep": GPU}},
        ["return keep.cpu().bernoulli(generator=draws).to(keep.device)"],
    ),
    "over lines": (
        HEAD + "def noise(x, draws):\n    return torch.randn(\n        x.shape,\n        generator=draws,\n        device=x.device,\n    )\n", "return torch", {},
        [").to(x.device)"],
    ),
}  # fmt: skip
LEFT = {
    "a generator of the GPU": (
        SAMPLER.format(draw="torch.randn(mean.shape, generator=self.stream, device='cpu')"), "noise =",
        {"message": "Expected a 'cpu' device type for generator but found 'cuda'"},
    ),
    "a leaf": (
        HEAD + "def start(draws):\n    z = torch.randn(4, generator=draws, device='cuda', requires_grad=True)\n    return z\n", "z =", {},
    ),
    "into memory that is given": (
        HEAD + "def fill(z, draws):\n    torch.randn(4, generator=draws, device='cuda', out=z)\n", "torch.randn", {},
    ),
    "arguments that are not seen": (
        HEAD + "def draw(draws, **options):\n    return torch.randn(4, generator=draws, **options)\n", "return torch", {},
    ),
    "no device is named": (HEAD + "def draw(draws):\n    return torch.randn(4, generator=draws)\n", "return torch", {}),
    "probabilities that were not seen": (
        HEAD + "def pick(scores, draws):\n    return torch.multinomial(scores, 2, generator=draws)\n", "return torch", {},
    ),
    "nothing draws": (HEAD + "draws = torch.Generator()\nfor x in loader:\n    pass\n", "for x", {}),
}  # fmt: skip


@pytest.mark.parametrize(("source", "at", "context", "lines"), MOVED.values(), ids=MOVED)
def test_moved(source, at, context, lines, tmp_path: pathlib.Path) -> None:
    after = rewritten(tmp_path, "draw_where_generator_is", source, at, **{"message": REFUSED, **context})
    assert changed_lines(source, after) == lines


@pytest.mark.parametrize(("source", "at", "context"), LEFT.values(), ids=LEFT)
def test_left_alone(source, at, context, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "draw_where_generator_is", source, at, **{"message": REFUSED, **context}) == source


@pytest.mark.torch
@pytest.mark.parametrize("draw", ["torch.randn(mean.shape, generator=self.stream, device=mean.device)"])
def test_the_numbers_stay(draw, tmp_path: pathlib.Path) -> None:
    """On the CPU, where both run, the edit draws what the program drew."""
    source = SAMPLER.format(draw=draw)
    after = rewritten(tmp_path, "draw_where_generator_is", source, "noise =", message=REFUSED)
    assert run(source, tmp_path / "one.py")["out"].equal(run(after, tmp_path / "other.py")["out"])


def test_only_the_generator_that_draws(tmp_path: pathlib.Path) -> None:
    """Of several generators the one that the failing draw was given is made elsewhere."""
    source = (
        HEAD + 'device = "cuda"\norder = torch.Generator()\nnoise = torch.Generator().manual_seed(3)\n'
        "data = torch.randn(9, generator=order)\nx = torch.randn(4, generator=noise, device=device)\n"
    )  # fmt: skip
    after = rewritten(tmp_path, "move_operand", source, "x =", message=REFUSED)
    assert changed_lines(source, after) == ["noise = torch.Generator(device=device).manual_seed(3)"]
