"""A hook of Lightning 1 that is to detach a state is renamed; what is called, or does something else, stays."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

MODULE = """import lightning as L
class Net(L.LightningModule):
    def training_step(self, batch, batch_idx):
        return self.memory(batch)  # here
{hook}
"""
HOOK = "    def on_batch_end(self):\n        self.memory.detach()\n"
RENAMED = {
    "the end of a batch": (HOOK, "    def on_train_batch_end(self, outputs, batch, batch_idx):"),
    "whatever it is given": (HOOK.replace("(self)", "(self, *args)"), "    def on_train_batch_end(self, *args):"),
    "the start of an epoch": (HOOK.replace("on_batch_end", "on_epoch_start").replace("detach", "reset_state"), "    def on_train_epoch_start(self):"),
}  # fmt: skip
KEPT = {
    "a log": HOOK.replace("self.memory.detach()", "print('done')"),
    "one that is called": HOOK
    + "    def on_train_batch_end(self, outputs, batch, batch_idx):\n        self.on_batch_end()\n",
    "arguments of its own": HOOK.replace("(self)", "(self, state)"),
}


@pytest.mark.parametrize(("hook", "line"), RENAMED.values(), ids=RENAMED)
def test_it_is_called_again(hook: str, line: str, tmp_path: pathlib.Path) -> None:
    """A second time nothing is left to do."""
    source = MODULE.format(hook=hook)
    after = rewritten(tmp_path, "hook_that_runs", source, "# here")
    assert diff_lines(source, after)[1:] == [f"+{line}"]
    assert rewritten(tmp_path, "hook_that_runs", after, "# here") == after


@pytest.mark.parametrize("hook", KEPT.values(), ids=KEPT)
def test_others_stay(hook: str, tmp_path: pathlib.Path) -> None:
    source = MODULE.format(hook=hook)
    assert rewritten(tmp_path, "hook_that_runs", source, "# here") == source


@pytest.mark.parametrize(("release", "is_kept"), [("1.9.5", True), ("2.6.0", False), (None, False)])
def test_lightning_1_calls_it(release: str | None, is_kept: bool, tmp_path: pathlib.Path) -> None:
    source = MODULE.format(hook=HOOK)
    after = rewritten(tmp_path, "hook_that_runs", source, "# here", version=lambda _: release)
    assert (after == source) is is_kept
