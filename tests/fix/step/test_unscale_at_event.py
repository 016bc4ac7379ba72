"""A callback that unscales listens to the event before the scaler's step."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import rewritten

SAID = {"message": "unscale_() has already been called on this optimizer since the last update()."}
RUN = """import torch


class Callback:
    def after_backward(self, run):
        pass

    def before_step(self, run):
        pass


class Clip(Callback):
    def after_backward(self, run):
        run.scaler.unscale_(run.optimizer)
        torch.nn.utils.clip_grad_norm_(run.model.parameters(), 1.0)


class Run:
    def __init__(self, model, optimizer, callbacks):
        self.model, self.optimizer, self.callbacks = model, optimizer, callbacks
        self.scaler = torch.amp.GradScaler("cpu")

    def fire(self, event):
        for one in self.callbacks:
            getattr(one, event)(self)

    def micro(self, x):
        self.scaler.scale(self.model(x).mean()).backward()
        self.fire("after_backward")

    def update(self):
        FIRE
        self.scaler.step(self.optimizer)
        self.scaler.update()
"""
CLIP = "class Clip(Callback):\n    def after_backward(self, run):"
TOLD = 'self.fire("before_step")'
KEPT = {
    "no event before the step": RUN.replace("FIRE", "pass"),
    "an event that the callback has": RUN.replace("FIRE", TOLD) + "\n\nClip.name = 1\n",
    "an event with other arguments": RUN.replace("FIRE", TOLD).replace(
        "before_step(self, run)", "before_step(self, run, loss)"
    ),
    "a method that the step runs by itself": RUN.replace(
        "FIRE", 'self.fire("after_backward"); self.fire("before_step")'
    ),
}
KEPT["an event that the callback has"] = KEPT["an event that the callback has"].replace(
    "class Run:", "    def before_step(self, run):\n        run.seen = True\n\n\nclass Run:"
)


@pytest.mark.parametrize("fire", [TOLD, "for one in self.callbacks:\n            one.before_step(self)"])
def test_the_method_gets_the_later_event(fire: str, tmp_path: pathlib.Path) -> None:
    """By a word, or by the method itself; a second time nothing is left to do."""
    source = RUN.replace("FIRE", fire)
    after = rewritten(tmp_path, "unscale_at_event", source, "run.scaler.unscale_", **SAID)
    assert after == source.replace(CLIP, CLIP.replace("after_backward", "before_step"))
    assert rewritten(tmp_path, "unscale_at_event", after, "run.scaler.unscale_", **SAID) == after


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_others_stay(source: str, tmp_path: pathlib.Path) -> None:
    """Where the callback could not be called so, or does something else then."""
    assert rewritten(tmp_path, "unscale_at_event", source, "run.scaler.unscale_", **SAID) == source
