"""A hook that a forward registers is registered where there is a graph."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from tests.fix.rewriting import best, changed_lines, failed, line_of, write

SAID = "cannot register a hook on a tensor that doesn't require gradient"
SOURCE = """import torch
from torch import nn
class Reversed(nn.Module):
    def forward(self, h):
        h = h.view_as(h)
        h.register_hook(lambda grad: -grad)
        return h
net = nn.Sequential(nn.Linear(2, 2), Reversed(), nn.Linear(2, 1))
@torch.no_grad()
def evaluate(x):
    return net(x).mean()
def train(x):
    net(x).mean().backward()
if __name__ == "__main__":
    train(torch.randn(4, 2))
    evaluate(torch.randn(4, 2))
"""


def rewritten(folder: pathlib.Path, source: str, above: str) -> list[str]:
    """The lines that the edit writes, where the forward failed below a line."""
    from explainer.fix.splice import splice

    program = write(folder, {"train.py": source})
    frames = failed({"train.py": line_of(source, above)}, SAID)
    hook = failed({"train.py": line_of(source, "register_hook")}, SAID)
    (outer,), (inner,) = frames.exceptions[0].frames, hook.exceptions[0].frames
    incident = type(frames)(
        exceptions=(type(frames.exceptions[0])(type="RuntimeError", message=SAID, frames=(outer, inner)),)
    )
    found = best("hook_with_graph", program, incident=incident)
    return changed_lines(source, splice(source, found.edits) or "") if found is not None else []


@pytest.mark.torch
def test_an_evaluation_registers_none(tmp_path: pathlib.Path) -> None:
    """The program fails there as it is, and runs with the edit."""
    pytest.importorskip("torch")
    assert rewritten(tmp_path, SOURCE, "return net(x).mean()") == [
        "if h.requires_grad:",
        "h.register_hook(lambda grad: -grad)",
    ]
    with pytest.raises(RuntimeError, match="cannot register a hook"):
        exec(SOURCE, {"__name__": "__main__"})  # noqa: S102 - the program of the test
    line = "        h.register_hook(lambda grad: -grad)\n"
    mended = SOURCE.replace(line, f"        if h.requires_grad:\n    {line}")
    exec(mended, {"__name__": "__main__"})  # noqa: S102 - the program of the test


def test_training_that_has_no_graph_is_not_silenced(tmp_path: pathlib.Path) -> None:
    """A frozen input, or grad mode that is off where the program trains, is the fault itself."""
    assert rewritten(tmp_path, SOURCE, "net(x).mean().backward()") == []
    off = SOURCE.replace("def evaluate(x)", "def step(x)").replace("evaluate(torch", "step(torch")
    assert rewritten(tmp_path, off, "return net(x).mean()") == []


STEPPED = """import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features, self.head = nn.Linear(2, 2), nn.Linear(2, 1)
    def reversed(self, h):
        h.register_hook(lambda grad: -grad)
        return h
    def forward(self, x):
        return self.head(self.reversed(self.features(x)))
net = Net()
optimizer = torch.optim.Adam(net.parameters())
@torch.no_grad()
def evaluate(x):
    return net(x).mean()
net(torch.ones(4, 2)).mean().backward()
STEP
evaluate(torch.ones(4, 2))
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("step", "cause"), [("optimizer.step()", "backward/hook-contract"), ("pass", "no-graph/grad-mode-off")]
)
def test_steps_that_went_well_tell_that_the_hook_is_the_fault(tmp_path: pathlib.Path, step: str, cause: str) -> None:
    """Before any step grad mode may be what is wrong."""
    pytest.importorskip("torch")
    path = tmp_path / "train.py"
    path.write_text(STEPPED.replace("STEP", step))
    asked = f"import runpy, gradfix\ntry:\n    runpy.run_path({str(path)!r})\nexcept RuntimeError as error:\n    print(gradfix.explain(error).findings[0].cause)"
    done = subprocess.run([sys.executable, "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == cause
