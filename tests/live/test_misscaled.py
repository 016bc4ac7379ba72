"""Gradients that are clipped while scaled, and a backward past Accelerate: no error, another training."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import LogLine
from tests.fix.rewriting import failed, write
from tests.gate import some_at_gate
from tests.live.running import run

pytestmark = pytest.mark.torch

SCALED = """import torch
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=SCALE, enabled=ENABLED)
for _ in range(4):
    loss = net(torch.randn(4, 3)).pow(2).mean()
    opt.zero_grad()
    scaler.scale(loss).backward()
    UNSCALE
    torch.nn.utils.CLIP
    scaler.step(opt)
    scaler.update()
"""
ACCELERATED = """import torch
from accelerate import Accelerator
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=COUNT)
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net, opt = accelerator.prepare(net, opt)
for _ in range(8):
    with accelerator.accumulate(net):
        loss = net(torch.randn(4, 3)).pow(2).mean()
        BACKWARD
        opt.step()
        opt.zero_grad()
"""
UNPREPARED = ACCELERATED.replace("net, opt = accelerator.prepare(net, opt)", "net = accelerator.prepare(net)").replace(
    "BACKWARD", "accelerator.backward(loss)"
)
NORM, VALUE = "clip_grad_norm_(net.parameters(), 1.0)", "clip_grad_value_(net.parameters(), clip_value=0.5)"
SCALER, BARE = "precision/scaler-misuse", "trainer/backward-through-the-wrong-object"


def scaled(clip: str = NORM, unscale: str = "pass", scale: str = "1024.0", enabled: str = "True") -> str:
    text = SCALED.replace("CLIP", clip).replace("UNSCALE", unscale)
    return text.replace("SCALE", scale).replace("ENABLED", enabled)


def accelerated(backward: str, count: int = 4) -> str:
    return ACCELERATED.replace("BACKWARD", backward).replace("COUNT", str(count))


SEEN = {
    "the norm": (scaled(), SCALER, "nn.utils"),
    "the values": (scaled(VALUE), SCALER, "nn.utils"),
    "a plain backward": (accelerated("loss.backward()"), BARE, " loss.backward()"),
    "an optimizer that was not prepared": (UNPREPARED.replace("COUNT", "4"), BARE, " opt.step()"),
}
QUIET = {
    "unscaled first": scaled(unscale="scaler.unscale_(opt)"),
    "a scale of one": scaled(scale="1.0"),
    "a scaler that is off": scaled(enabled="False"),
    "a clip of another optimizer's": scaled().replace(
        "torch.nn.utils.clip_grad_norm_(net.parameters()",
        "torch.nn.utils.clip_grad_norm_(torch.nn.Linear(2, 2).parameters()",
    ),
    "a clip within the step, behind the scaler": scaled().replace(
        f"    torch.nn.utils.{NORM}\n",
        f"    if not _: opt.register_step_pre_hook(lambda *given: print(torch.nn.utils.{NORM}))\n",
    ),
    "a limit with the scale in it": scaled("clip_grad_norm_(net.parameters(), 1.0 * scaler.get_scale())"),
    "Accelerate's own": accelerated("accelerator.backward(loss)"),
    "divided by hand": accelerated("(loss / 4).backward()"),
    "no accumulation": accelerated("loss.backward()", 1),
    "an optimizer that was not prepared, without accumulation": UNPREPARED.replace("COUNT", "1"),
    "an optimizer that waits for the gradients": UNPREPARED.replace("COUNT", "4")
    .replace("opt.step()", "if accelerator.sync_gradients: opt.step()")
    .replace("opt.zero_grad()", "if accelerator.sync_gradients: opt.zero_grad()"),
}


@pytest.mark.parametrize(("source", "cause", "words"), some_at_gate(SEEN, ["the norm"]))
def test_it_is_seen(tmp_path: pathlib.Path, source: str, cause: str, words: str) -> None:
    """The run ends well; it is told with its line."""
    pytest.importorskip("accelerate")
    (tmp_path / "train.py").write_text(source)
    done, _ = run(tmp_path, "train.py")
    assert (done.status, done.report.findings[0].cause) == (0, cause)
    (wrong,) = done.processes[0].misscaled
    line = next(at for at, text in enumerate(source.splitlines(), 1) if words in text)
    assert (pathlib.Path(wrong.file).name, wrong.line) == ("train.py", line)


@pytest.mark.parametrize("source", some_at_gate(QUIET, ["unscaled first"]))
def test_what_is_meant_is_not(tmp_path: pathlib.Path, source: str) -> None:
    """Nothing is said of a clip behind `unscale_`, of a limit that was scaled as well, of a division that is not needed."""
    pytest.importorskip("accelerate")
    (tmp_path / "train.py").write_text(source)
    done, _ = run(tmp_path, "train.py")
    assert (done.status, done.report, done.processes[0].misscaled) == (0, None, ())


def told(source: str, folder: pathlib.Path, line: int) -> list:
    log = (
        LogLine(
            text=f"seen in the live program: train.py:{line} clips gradients that still carry GradScaler's factor of 2"
        ),
    )
    from dataclasses import replace

    context = Context(program=write(folder, {"train.py": source}), incident=replace(failed(), log=log))
    return list(find_codemod("unscale_before_clip")(context))


def test_the_clip_that_was_seen_is_led_by_an_unscale(tmp_path: pathlib.Path) -> None:
    """Only that one, and not where the optimizer is unscaled already."""
    source = scaled().replace("    pass\n", "")
    (proposal,) = told(source, tmp_path, 9)
    after = splice(source, proposal.edits)
    assert after == source.replace("    torch.nn", "    scaler.unscale_(opt)\n    torch.nn")
    assert told(source, tmp_path, 10) == []
    (again,) = told(after, tmp_path, 10)
    assert again.edits == ()
