"""The later of two updates comes first, where a trace saw the earlier one step what the later loss goes back through."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import ExceptionRecord, Frame, Incident
from explainer.model.trace import WRITE, TracedLine
from tests.fix.rewriting import best, diff_lines, line_of, write

STALE = "one of the variables needed for gradient computation has been modified by an inplace operation"
PROGRAM = """import torch
class Optimizer:
    def __init__(self, module):
        self.opt = torch.optim.Adam(module.parameters())
    def __call__(self, loss):
        self.opt.zero_grad()
        loss.backward()  # backward
        self.opt.step()  # step
        return {{"loss": loss.item()}}

class Agent:
    def __init__(self, actor, value):
        self.actor_opt, self.value_opt = Optimizer(actor), Optimizer(value)
    def train(self, metrics, actor_loss, value_loss):
{body}
        return metrics
"""
SWAPPED = {
    "a dictionary": [
        "metrics.update(self.value_opt(value_loss))",
        "metrics.update(self.actor_opt(actor_loss))  # second",
    ],
    "names": ["first = self.value_opt(value_loss)", "second = self.actor_opt(actor_loss)  # second"],
}
KEPT = {
    "a loss of what the first update gives": ["first = self.value_opt(value_loss)", "second = self.actor_opt(actor_loss * first['loss'])  # second"],
    "a way out": ["first = self.value_opt(value_loss)", "if not first: return", "second = self.actor_opt(actor_loss)  # second"],
    "a name that both bind": ["told = self.value_opt(value_loss)", "told = self.actor_opt(actor_loss)  # second"],
}  # fmt: skip


def after(lines: list[str], folder: pathlib.Path, program: str = PROGRAM) -> tuple[str, str]:
    """The program before and after the best edit."""
    source = program.format(body="\n".join(f"        {one}" for one in lines))
    path = str(folder / "train.py")
    read = write(folder, {"train.py": source})
    frames = tuple(Frame(file=path, line=line_of(source, f"# {word}")) for word in ("second", "backward"))
    traced = (TracedLine(kind=WRITE, operation="step", file=path, line=line_of(source, "# step")),)
    failed = ExceptionRecord(type="RuntimeError", message=STALE, frames=frames)
    found = best("swap_updates", read, incident=Incident(exceptions=(failed,), traced=traced))
    return source, (splice(source, found.edits) or "") if found is not None else source


@pytest.mark.parametrize("lines", SWAPPED.values(), ids=SWAPPED)
def test_the_later_update_comes_first(lines: list[str], tmp_path: pathlib.Path) -> None:
    source, found = after(lines, tmp_path)
    assert diff_lines(source, found) == [f"+        {lines[1]}", f"-        {lines[1]}"]
    assert found.index("self.actor_opt(") < found.index("self.value_opt(")


@pytest.mark.parametrize("lines", KEPT.values(), ids=KEPT)
def test_what_needs_the_order_stays(lines: list[str], tmp_path: pathlib.Path) -> None:
    source, found = after(lines, tmp_path)
    assert found == source


LATE = PROGRAM.replace("        self.opt.zero_grad()\n", "").replace(
    "  # step\n", "  # step\n        self.opt.zero_grad()\n"
)
OPEN = """import torch
class Gan:
    def train(self, loss_d, loss_g):
        self.opt_d.zero_grad()
        loss_d.backward()
        self.opt_d.step()  # step
        self.opt_g.zero_grad()
        loss_g.backward()  # second, backward
        self.opt_g.step()
{body}
"""


@pytest.mark.parametrize("program", [LATE, OPEN], ids=["cleared behind the step", "no update of its own"])
def test_gradients_of_the_other_loss_are_not_mixed_in(program: str, tmp_path: pathlib.Path) -> None:
    """What goes back earlier leaves gradients in the other network's weights: where nothing clears these, it must not."""
    lines = SWAPPED["a dictionary"] if program is LATE else []
    source = program.format(body="\n".join(f"        {one}" for one in lines))
    if program is OPEN:
        source = source.replace("# second, backward", "# second")
        path = str(tmp_path / "train.py")
        read = write(tmp_path, {"train.py": source})
        failed = ExceptionRecord(
            type="RuntimeError", message=STALE, frames=(Frame(file=path, line=line_of(source, "# second")),)
        )
        traced = (TracedLine(kind=WRITE, operation="step", file=path, line=line_of(source, "# step")),)
        assert best("swap_updates", read, incident=Incident(exceptions=(failed,), traced=traced)) is None
    else:
        assert after(lines, tmp_path, program)[1] == source
