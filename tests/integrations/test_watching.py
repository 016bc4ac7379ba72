"""`gradfix.watch()`: what goes wrong in silence is told while it happens, a healthy training goes without a word."""

from __future__ import annotations

import gc
import json
import os
import runpy
import subprocess
import sys
import weakref

import pytest

from explainer.errors import SilentFailure, UsageError
from explainer.integrations.watching import watch
from tests import forked
from tests.conftest import PATH, ROOT

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
HEALTHY = (
    "plain",
    "gan",
    "delayed_critic",
    "accumulation",
    "guarded_gradients",
    "guarded_skip",
    "scaler_fused",
    "scaler_skips",
    "lbfgs",
    "padded_start",
    "zero_initialised",
    "warmup_from_zero",
    "optimizer_in_backward",
    "sparse_embedding",
    "two_optimizers",
    "caught_failure",
)


def net() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def train(steps: int, spoilt: int | None = None, model=None, optimizer=None) -> None:
    """A loop; from the step `spoilt` on its data is not finite."""
    if model is None:
        model, optimizer = net()
    for step in range(steps):
        x = torch.randn(4, 3) * (float("nan") if step == spoilt else 1.0)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()


def train_nothing(steps: int) -> None:
    """A loop whose optimizer gets no gradient: the graph is cut before its model."""
    model, optimizer = net()
    head = torch.nn.Linear(2, 2)
    for _ in range(steps):
        head(model(torch.randn(4, 3)).detach()).square().mean().backward()
        optimizer.step()


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_program_goes_without_a_word(name: str, capsys, monkeypatch, tmp_path) -> None:
    """Overflow that is thrown away, zero and missing first gradients, parts that train later: none is a fault."""
    monkeypatch.chdir(tmp_path)
    with watch(on_silent="stop") as seen:
        runpy.run_path(str(ROOT / "benchmarks" / "healthy" / f"{name}.py"), run_name="__main__")
    assert seen.faults == []
    assert "gradfix" not in capsys.readouterr().err
    assert seen.summary.endswith("nothing went wrong in silence")


def test_a_gradient_that_is_not_finite_between_two_looks(capsys) -> None:
    """A step that is not looked at by itself is found by its flag, within twenty steps; the card is printed once."""
    with watch() as seen:
        train(60, spoilt=34)
        told = capsys.readouterr().err
    assert seen.faults[0].startswith("step 42 of the 1st optimizer (SGD) has gradients that are not finite: Linear.")
    assert told.count("nan/") >= 1
    assert "what  " in told
    rest = capsys.readouterr().err
    assert rest.startswith("gradfix: 60 steps of the 1st optimizer (SGD), 2 of 2 parameters trained")
    assert len(rest.splitlines()) == 1


def test_training_that_reaches_nothing_is_stopped() -> None:
    """The step raises; the exception carries the report, and the parameters are what they were before it."""
    with pytest.raises(SilentFailure, match="no parameter of the 1st optimizer") as stopped, watch(on_silent="stop"):
        train_nothing(500)
    assert stopped.value.report.findings[0].cause.startswith("no-graph/")


def test_a_function_is_called_with_the_report() -> None:
    """Once, and training goes on."""
    got = []
    with watch(on_silent=got.append) as seen:
        train_nothing(40)
    assert [one.findings[0].cause for one in got] == [seen.reports[0].findings[0].cause]
    assert seen.summary.startswith("40 steps")


def test_a_short_training_is_judged_at_its_end(capsys) -> None:
    """Fewer steps than a look waits for."""
    with watch() as seen:
        train_nothing(4)
    assert seen.faults == ["no parameter of the 1st optimizer (SGD) got a gradient"]
    assert "no-graph/" in capsys.readouterr().err


def test_the_hooks_are_gone_afterwards() -> None:
    """Nothing of gradfix stays in torch or in Python, and no optimizer is held alive."""
    from torch.optim import optimizer as module

    places = lambda: (
        torch.autograd.backward, torch.autograd.grad, torch.optim.Optimizer.__init__, sys.excepthook,
        len(module._global_optimizer_pre_hooks), len(module._global_optimizer_post_hooks),
    )  # fmt: skip
    before = places()
    model, optimizer = net()
    held = weakref.ref(optimizer)
    with watch():
        assert places() != before
        train(3, model=model, optimizer=optimizer)
        del optimizer
        gc.collect()
        assert held() is None
    assert places() == before


def test_a_block_takes_over_from_one_that_never_ended() -> None:
    """A training that failed unseen leaves its hooks; the next one is watched alone."""
    outer = watch(on_silent="stop")
    outer.__enter__()
    with watch(summary=True) as seen:
        train(3)
    outer.__exit__(None, None, None)
    assert seen.summary.startswith("3 steps of the 1st optimizer (SGD)")


def test_what_is_no_answer_is_refused() -> None:
    """Before anything is hooked."""
    with pytest.raises(UsageError, match="on_silent='raise'"), watch(on_silent="raise"):
        pass


CRASH = """
import torch, gradfix
model = torch.nn.Linear(2, 1)
def train():
    with torch.no_grad():
        model(torch.ones(1, 2)).sum().backward()
with gradfix.watch():
    train()
"""


def test_a_crash_is_explained_below_its_traceback(tmp_path) -> None:
    """With what was true where it was raised: grad mode is on again when the traceback is printed."""
    (tmp_path / "train.py").write_text(CRASH)
    environment = {**os.environ, "PYTHONPATH": PATH}
    command = [forked.python(), "train.py"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 1
    assert "explainer" not in done.stderr
    assert done.stderr.index("Traceback") < done.stderr.index("no-graph/grad-mode-off  certain")
    assert "grad mode is off where the failure was raised  [live]" in done.stderr


@pytest.mark.parametrize("failing", [".sum().backward()", "@ torch.ones(3, 3)"], ids=["in backward", "in forward"])
def test_under_gradfix_run_there_is_one_card(tmp_path, failing: str) -> None:
    """The run that watches from outside explains, with what was live; the block inside stays quiet."""
    (tmp_path / "train.py").write_text(CRASH.replace(".sum().backward()", failing))
    command = [
        sys.executable,
        "-m",
        "gradfix",
        "run",
        "--format",
        "json",
        "--no-probe",
        "--",
        forked.python(),
        "train.py",
    ]
    environment = {**os.environ, "PYTHONPATH": PATH}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert "what  " not in done.stderr
    facts = {one["name"] for one in json.loads(done.stdout)["report"]["incident"]["facts"]}
    assert "live_grad_enabled" in facts
