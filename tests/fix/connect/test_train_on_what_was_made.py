"""A generator's loss takes this step's images where it is given those of a pool."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.trace import STARVING_CUT, STARVING_OFF, TracedLine
from tests.fix.rewriting import best, diff_lines, failed, line_of, write

POOL = """import random

import torch


class Pool:
    def __init__(self, size):
        self.size, self.kept = size, []

    def query(self, batch):
        out = []
        for one in batch.detach():
            if len(self.kept) < self.size:
                self.kept.append(one)
                out.append(one)
            else:
                at = random.randrange(self.size)
                out.append(self.kept[at])
                self.kept[at] = one
        return torch.stack(out)


def mix(kept, batch):
    kept.extend(batch.data)
    return torch.stack(random.sample(kept, len(batch)))


def blur(batch):
    return batch.detach().mean(dim=1)


class Buffer:
    def __init__(self):
        self.rows = None

    @torch.no_grad()
    def exchange(self, rows):
        old, self.rows[0] = self.rows, rows
        return old
"""
TRAIN = """import torch
from torch import nn

from nets import Critic, Maker, scored
from pool import Buffer, Pool, blur, mix


def train(loader, pool, kept, buffer):
    gen, disc = Maker(), Critic()
    opt_g = torch.optim.Adam(gen.parameters(), lr=1e-3)
    opt_d = torch.optim.Adam(disc.parameters(), lr=1e-3)
    for step, (real, z) in enumerate(loader):
        MADE
        opt_d.zero_grad()
        d_loss = (disc(real) - 1).square().mean() + disc(SEEN).square().mean()
        d_loss.backward()
        opt_d.step()
        opt_g.zero_grad()
        g_loss = LOSS
        g_loss.backward()
        opt_g.step()
        print(step, g_loss.item())
"""
AS_IT_IS = {"MADE": "fake = pool.query(gen(z))", "SEEN": "fake", "LOSS": "(disc(fake) - 1).square().mean()"}
CUT = "for one in batch.detach():"
# What differs from AS_IT_IS, and texts that are replaced in the whole.
LEFT: dict[str, dict[str, str]] = {
    "the pool is read by the critic alone": {
        "MADE": "fake = gen(z)\n        shown = pool.query(fake)",
        "SEEN": "shown",
    },
    "the pool is read in the critic's loss alone": {"MADE": "fake = gen(z)", "SEEN": "pool.query(fake)"},
    "the critic reads no pool": {"MADE": "fake = gen(z)\n        shown = pool.query(fake)", "SEEN": "fake.detach()", "LOSS": "disc(shown).mean()"},
    "the scores are shared": {
        "MADE": "fake = pool.query(gen(z))\n        score = disc(fake)",
        "disc(SEEN)": "score",
        "LOSS": "(score - 1).square().mean()",
    },
    "the pool begins later": {"MADE": "fake = gen(z)\n        if step > 5:\n            fake = pool.query(fake)"},
    "data goes through the pool": {"MADE": "fake = pool.query(real)"},
    "a helper that keeps nothing": {"MADE": "fake = blur(gen(z))"},
    "one optimizer for both": {"gen.parameters()": "[*gen.parameters(), *disc.parameters()]", "opt_d.step()": "opt_g.step()"},
    "both steps behind both backwards": {"        opt_d.step()\n": "", "opt_g.step()": "opt_g.step()\n        opt_d.step()"},
    "one backward for both": {"        d_loss.backward()\n": "", "g_loss.backward()": "(d_loss + g_loss).backward()"},
    "the pool hands back two": {"MADE": "fake, ages = pool.query(gen(z))"},
}  # fmt: skip
MENDED: dict[str, tuple[dict[str, str], list[str]]] = {
    "made in the call": (
        {},
        [
            "-        fake = pool.query(gen(z))",
            "+        fresh_fake = gen(z)",
            "+        fake = pool.query(fresh_fake)",
            "-        g_loss = (disc(fake) - 1).square().mean()",
            "+        g_loss = (disc(fresh_fake) - 1).square().mean()",
        ],
    ),
    "the name is given away": (
        {"MADE": "fake = gen(z)\n        fake = pool.query(fake)"},
        [
            "-        fake = pool.query(fake)",
            "+        pooled_fake = pool.query(fake)",
            "-        d_loss = (disc(real) - 1).square().mean() + disc(fake).square().mean()",
            "+        d_loss = (disc(real) - 1).square().mean() + disc(pooled_fake).square().mean()",
        ],
    ),
    "the name is read behind the loop": (
        {
            "MADE": "fake = gen(z)\n        fake = pool.query(fake)",
            "print(step, g_loss.item())": "print(step)\n    return fake",
        },
        [
            "+        fresh_fake = fake",
            "-        g_loss = (disc(fake) - 1).square().mean()",
            "+        g_loss = (disc(fresh_fake) - 1).square().mean()",
        ],
    ),
    "two names": (
        {
            "MADE": "fake = gen(z)\n        shown = pool.query(fake)",
            "SEEN": "shown",
            "LOSS": "scored(disc, shown, real)",
        },
        ["-        g_loss = scored(disc, shown, real)", "+        g_loss = scored(disc, fake, real)"],
    ),
    "the critic's loss detaches again": (
        {"MADE": "fake = gen(z)\n        shown = pool.query(fake)", "SEEN": "shown.detach()", "LOSS": "disc(shown).mean()"},
        ["-        g_loss = disc(shown).mean()", "+        g_loss = disc(fake).mean()"],
    ),
    "asked for in each loss": (
        {"MADE": "fake = gen(z)", "SEEN": "pool.query(fake)", "LOSS": "scored(disc, pool.query(fake), real)"},
        ["-        g_loss = scored(disc, pool.query(fake), real)", "+        g_loss = scored(disc, fake, real)"],
    ),
    "detached on the way in": (
        {"MADE": "fake = gen(z)\n        shown = pool.query(fake.detach()).to(real.device)", "SEEN": "shown",
         "LOSS": "disc(shown).mean()"},
        ["-        g_loss = disc(shown).mean()", "+        g_loss = disc(fake).mean()"],
    ),
    "through scores of its own": (
        {"MADE": "images = gen(z)\n        fake = pool.query(images)", "LOSS": "torch.relu(1 - (score := disc(fake))).mean()"},
        [
            "-        g_loss = torch.relu(1 - (score := disc(fake))).mean()",
            "+        g_loss = torch.relu(1 - (score := disc(images))).mean()",
        ],
    ),
}  # fmt: skip
ELSEWHERE = {
    "a function with a list": ("images = gen(z)\n        fake = mix(kept, images)", "kept.extend(batch.data)", STARVING_CUT),
    "grad mode off": ("images = gen(z)\n        fake = buffer.exchange(images)", "@torch.no_grad()", STARVING_OFF),
}  # fmt: skip
ALONE = {
    "the target of Q values": """import torch


def train(net, target, loader):
    optimizer = torch.optim.Adam(net.parameters())
    for state, action, reward, after in loader:
        with torch.no_grad():
            wanted = reward + 0.9 * target(after).max(1).values
        loss = (net(state).gather(1, action) - wanted).square().mean()
        loss.backward()
        optimizer.step()
""",
    "a queue of keys": """import torch


class Queue:
    def __init__(self):
        self.keys = []

    def push(self, keys):
        self.keys.extend(keys.detach())
        return torch.stack(self.keys[-64:])


def train(encoder, follower, queue, loader):
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
    for one, other in loader:
        negatives = queue.push(follower(other))
        loss = torch.logsumexp(encoder(one) @ negatives.T, 1).mean()
        loss.backward()
        optimizer.step()
""",
}


def _mended(tmp_path: pathlib.Path, source: str, traced: str, kind: str = STARVING_CUT) -> list[str]:
    program = write(tmp_path, {"train.py": source, "pool.py": POOL})
    file = "pool.py" if traced in POOL else "train.py"
    text = POOL if traced in POOL else source
    seen = TracedLine(
        kind=kind, operation="detach", file=str(tmp_path / file), line=line_of(text, traced), says="starves"
    )
    proposal = best("train_on_what_was_made", program, incident=replace(failed(), traced=(seen,)))
    return diff_lines(source, splice(source, proposal.edits) or "") if proposal else []


def _written(changed: dict[str, str], source: str = TRAIN) -> str:
    for old, new in {**changed, **{key: value for key, value in AS_IT_IS.items() if key not in changed}}.items():
        source = source.replace(old, new)
    return source


@pytest.mark.parametrize("changed", LEFT.values(), ids=LEFT)
def test_a_pool_is_left(tmp_path: pathlib.Path, changed: dict[str, str]) -> None:
    """Nothing is proposed where the pool is read as it should, or where more than a name decides."""
    assert _mended(tmp_path, _written(changed), CUT) == []


@pytest.mark.parametrize("source", ALONE.values(), ids=ALONE)
def test_values_without_a_graph_are_left(tmp_path: pathlib.Path, source: str) -> None:
    """Targets and keys have no graph on purpose."""
    assert _mended(tmp_path, source, "keys.detach()" if "detach" in source else "torch.no_grad()") == []


@pytest.mark.parametrize(("changed", "after"), MENDED.values(), ids=MENDED)
def test_the_maker_learns_from_what_it_made(tmp_path: pathlib.Path, changed: dict[str, str], after: list[str]) -> None:
    """The generator's loss reads this step's batch, and the critic's goes on with the pool."""
    assert _mended(tmp_path, _written(changed), CUT) == after


@pytest.mark.parametrize(("made", "traced", "kind"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_pool_of_another_shape(tmp_path: pathlib.Path, made: str, traced: str, kind: str) -> None:
    """A list that a function fills is a pool, and one that records nothing cuts like one that detaches."""
    diff = _mended(tmp_path, _written({"MADE": made}), traced, kind)
    assert diff[-1] == "+        g_loss = (disc(images) - 1).square().mean()"


@pytest.mark.parametrize(
    ("codemod", "made", "traced", "kind"),
    [
        ("reconnect_traced", "fake = pool.query(gen(z))", CUT, STARVING_CUT),
        ("leave_traced_grad_mode", *ELSEWHERE["grad mode off"]),
    ],
    ids=["a detach", "grad mode off"],
)
def test_the_pool_keeps_no_graph(tmp_path: pathlib.Path, codemod: str, made: str, traced: str, kind: str) -> None:
    """What cuts in the pool stays: with the graph of an earlier step in it, a later backward fails."""
    program = write(tmp_path, {"train.py": _written({"MADE": made}), "pool.py": POOL})
    path, line = str(tmp_path / "pool.py"), line_of(POOL, traced)
    seen = TracedLine(kind=kind, operation="detach", file=path, line=line, says="starves")
    assert best(codemod, program, incident=replace(failed(), traced=(seen,))) is None


def test_the_cut_at_the_call(tmp_path: pathlib.Path) -> None:
    """A detach on the way into the pool is traced where the pool is called."""
    source = _written({"MADE": "fake = pool.query(gen(z).detach())"})
    assert _mended(tmp_path, source, "gen(z).detach()")[1:3] == [
        "+        fresh_fake = gen(z)",
        "+        fake = pool.query(fresh_fake.detach())",
    ]


def test_a_generator_that_steps_first(tmp_path: pathlib.Path) -> None:
    """In CycleGAN the generators go first, each of two pools has its critic, and the networks belong to an object."""
    diff = _mended(tmp_path, CYCLE, CUT)
    assert [one for one in diff if one.startswith("+")] == [
        "+        fresh_fake_b = self.to_b(a)",
        "+        self.fake_b = self.pool_b.query(fresh_fake_b)",
        "+        fresh_fake_a = self.to_a(b)",
        "+        self.fake_a = self.pool_a.query(fresh_fake_a)",
        "+        loss = (self.of_a(fresh_fake_a) - 1).square().mean() + (self.of_b(fresh_fake_b) - 1).square().mean()",
    ]


CYCLE = """import itertools

import torch

from pool import Pool


class Cycle:
    def __init__(self, to_a, to_b, of_a, of_b):
        self.to_a, self.to_b, self.of_a, self.of_b = to_a, to_b, of_a, of_b
        self.pool_a, self.pool_b = Pool(50), Pool(50)
        self.opt_g = torch.optim.Adam(itertools.chain(self.to_a.parameters(), self.to_b.parameters()))
        self.opt_d = torch.optim.Adam(itertools.chain(self.of_a.parameters(), self.of_b.parameters()))

    def step(self, a, b):
        self.fake_b = self.pool_b.query(self.to_b(a))
        self.fake_a = self.pool_a.query(self.to_a(b))
        self.opt_g.zero_grad()
        loss = (self.of_a(self.fake_a) - 1).square().mean() + (self.of_b(self.fake_b) - 1).square().mean()
        loss.backward()
        self.opt_g.step()
        self.opt_d.zero_grad()
        d_loss = self.of_a(self.fake_a).square().mean() + self.of_b(self.fake_b).square().mean()
        d_loss.backward()
        self.opt_d.step()
"""
