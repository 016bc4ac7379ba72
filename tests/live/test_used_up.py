"""Iterators of parameters that are kept and used up where a loss has no graph, and an optimizer is frozen."""

from __future__ import annotations

import itertools
import linecache

import pytest

from explainer.live.used_up import is_used_up

pytestmark = pytest.mark.torch

PROGRAM = """import itertools
import torch
from torch import nn


class Game:
    def __init__(self):
        self.maker, self.one, self.two = nn.Linear(2, 2), nn.Linear(2, 1), nn.Linear(2, 1)
        self.critics = {kept}
        self.opt = torch.optim.SGD([*self.one.parameters(), *self.two.parameters()], lr=0.1)

    def switch(self, parameters, flag):
        for p in parameters:
            p.requires_grad_(flag)

    def step(self):
        fake = self.maker(torch.ones(3, 2))
        {freeze}
        {thaw}
        (self.one(fake.detach()) - self.two(fake.detach())).mean().backward()


game = Game()
game.step()
"""
CHAIN = "itertools.chain(self.one.parameters(), self.two.parameters())"
FREEZE, THAW = "self.switch(self.critics, False)", "self.switch(self.critics, True)"
BOTH = "self.one.requires_grad_(False); self.two.requires_grad_(False)"


@pytest.fixture(autouse=True)
def _torch():
    pytest.importorskip("torch")


def seen(path, kept: str, freeze: str, thaw: str) -> str | None:
    """What the live objects say of iterators where the program fails."""
    from explainer.live.crash import look
    from explainer.verification.live_report import facts_of

    source = PROGRAM.format(kept=kept, freeze=freeze, thaw=thaw)
    path.write_text(source)
    linecache.checkcache()
    with pytest.raises(RuntimeError, match="does not require grad") as failed:
        exec(compile(source, str(path), "exec"), {"__name__": "program"})  # noqa: S102 - the program of a test
    return dict(facts_of(look(failed.value))).get("live_used_up")


@pytest.mark.parametrize("kept", [CHAIN, f"filter(lambda p: p is not None, {CHAIN})", f"(p for p in {CHAIN})"])
def test_what_a_pass_has_used_up(tmp_path, kept: str) -> None:
    """Frozen by one pass, thawed by none."""
    assert seen(tmp_path / "train.py", kept, FREEZE, THAW) == "critics"


RIGHT = {
    "a list": (f"list({CHAIN})", FREEZE, "pass"),
    "never walked": (CHAIN, BOTH, "pass"),
    "walked by what sets no flags": (CHAIN, f"torch.optim.SGD(self.critics, lr=0.1); {BOTH}", "len(list(self.critics))"),
    "frozen by it, and never to be thawed": (CHAIN, FREEZE, "pass"),
}  # fmt: skip


@pytest.mark.parametrize(("kept", "freeze", "thaw"), RIGHT.values(), ids=RIGHT)
def test_what_has_another_cause(tmp_path, kept: str, freeze: str, thaw: str) -> None:
    """Critics that are frozen by other means, or on purpose."""
    assert seen(tmp_path / "train.py", kept, freeze, thaw) is None


def test_no_element_is_taken() -> None:
    """Iterators with something left keep it."""
    left = [itertools.chain([1]), filter(None, (x for x in [1])), map(str, (x for x in [1])), (x for x in [1])]
    assert not any(is_used_up(one) for one in left)
    assert [len(list(one)) for one in left] == [1, 1, 1, 1]
    assert all(is_used_up(one) for one in left)


@pytest.mark.parametrize(("made", "left"), [("((n, p) for n, p in own)", "named"), ("list(own)", None)])
def test_what_an_optimizer_got_nothing_of(tmp_path, made: str, left: str | None) -> None:
    """An iterator of parameters that was counted first, among the variables on the way to the failure."""
    from explainer.live.crash import look
    from explainer.verification.live_report import facts_of

    path = tmp_path / "train.py"
    path.write_text(f"""import torch
def configure(own):
    named = {made}
    print(sum(p.numel() for _, p in named))
    return torch.optim.SGD([p for _, p in named if p.requires_grad], lr=0.1)
configure([("w", torch.zeros(2))])
""")
    linecache.checkcache()
    with pytest.raises(ValueError, match="empty parameter list") as failed:
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "program"})  # noqa: S102 - the program of a test
    assert dict(facts_of(look(failed.value))).get("live_exhausted") == left
