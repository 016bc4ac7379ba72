"""A loss that was seen to go backward without the scaler's factor gets it, from the scaler that is in reach."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Incident, LogLine
from explainer.model.verification import LACKS_FACTOR
from tests.fix.rewriting import diff_lines, line_of, write

TOP = "import torch\nfrom torch.amp import GradScaler\n"
MAIN = "def main(net, opt, batches):\n    scaler = GradScaler()\n    for x in batches:\n        scaler.scale(net(x).mean()).backward()\n"
END = "        scaler.step(opt)\n        scaler.update()\n"
CLASS = "class Trainer:\n    def __init__(self):\n        self.scaler = GradScaler()\n    def step(self, net, opt, x):\n        self.scaler.scale(net(x).mean()).backward()\n        self.penalise(net, x)\n        self.scaler.step(opt)\n"
STEP = "def step(net, x):\n    scaler.scale(net(x).mean()).backward()\n"
PENALTY = "def penalise(net, x):\n    net(x).square().mean().backward()  # SEEN\n"
# `SEEN` stands in the line that was seen.
RIGHT = {
    "two scalers": TOP + "def main(net, opt, x):\n    a, b = GradScaler(), GradScaler()\n    a.scale(net(x)).backward()\n    b.scale(net(x)).backward()\n    net(x).mean().backward()  # SEEN\n    a.step(opt)\n    b.step(opt)\n",
    "an engine": TOP + MAIN + "        engine.backward(net(x).mean())  # SEEN\n" + END,
    "handed to somebody": TOP + PENALTY + MAIN + "        later(penalise, net)\n        penalise(net, x)\n" + END,
    "a caller without a scaler": TOP + PENALTY + "def warm_up(net, x):\n    penalise(net, x)\nwarm_up(None, 1)\n" + MAIN + "        penalise(net, x)\n" + END,
    "a parameter of that name": TOP + "def penalise(net, x, scaler):\n    scaler(net(x)).mean().backward()  # SEEN\n" + MAIN + "        penalise(net, x, print)\n" + END,
    "several losses": TOP + MAIN + "        torch.autograd.backward([net(x).mean()])  # SEEN\n" + END,
    "no scaler in sight": TOP + PENALTY,
}  # fmt: skip
WRONG = {
    "beside it": (TOP + MAIN + "        (2 * net(x).mean()).backward(retain_graph=True)  # SEEN\n" + END, ["scaler.scale(2 * net(x).mean()).backward(retain_graph=True)  # SEEN"]),
    "autograd's own": (TOP + MAIN + "        torch.autograd.backward(net(x).mean())  # SEEN\n" + END, ["torch.autograd.backward(scaler.scale(net(x).mean()))  # SEEN"]),
    "over several lines": (TOP + MAIN + "        (\n            net(x).mean()\n        ).backward()  # SEEN\n" + END, ["scaler.scale(net(x).mean()).backward()  # SEEN"]),
    "a helper": (
        TOP + PENALTY + MAIN + "        penalise(net, x)\n" + END,
        ["def penalise(net, x, scaler):", "scaler.scale(net(x).square().mean()).backward()  # SEEN", "penalise(net, x, scaler)"],
    ),
    "a helper with a default": (
        TOP + PENALTY.replace("net, x)", "net, x, p=2)", 1) + MAIN + "        penalise(net, x=x)\n" + END,
        ["def penalise(net, x, p=2, *, scaler):", "scaler.scale(net(x).square().mean()).backward()  # SEEN", "penalise(net, x=x, scaler=scaler)"],
    ),
    "a helper of a helper": (
        TOP + PENALTY + "def both(net, *, x):\n    penalise(net, x)\n" + MAIN + "        both(net, x=x)\n" + END,
        ["def penalise(net, x, scaler):", "scaler.scale(net(x).square().mean()).backward()  # SEEN", "def both(net, *, x, scaler):", "penalise(net, x, scaler)", "both(net, x=x, scaler=scaler)"],
    ),
    "a method": (
        TOP + CLASS + "    def penalise(self, net, x):\n        net(x).square().mean().backward()  # SEEN\n",
        ["self.scaler.scale(net(x).square().mean()).backward()  # SEEN"],
    ),
    "a helper of a method": (
        TOP + PENALTY + CLASS.replace("self.penalise", "penalise"),
        ["def penalise(net, x, scaler):", "scaler.scale(net(x).square().mean()).backward()  # SEEN", "penalise(net, x, self.scaler)"],
    ),
    "a function inside": (
        TOP + MAIN.replace("    for", "    def penalise():\n        net(1).mean().backward()  # SEEN\n    for") + "        penalise()\n" + END,
        ["scaler.scale(net(1).mean()).backward()  # SEEN"],
    ),
    "the module's": (
        TOP + "scaler = GradScaler()\n" + STEP + PENALTY + "step(net, x)\npenalise(net, x)\nscaler.step(opt)\n",
        ["scaler.scale(net(x).square().mean()).backward()  # SEEN"],
    ),
}  # fmt: skip


def mended(files: Mapping[str, str], folder: pathlib.Path, seen: str) -> dict[str, str]:
    """The files after the best edit for the line of `seen` that was seen."""
    at = LogLine(text=f"seen in the live program: {seen}:{line_of(files[seen], 'SEEN')} {LACKS_FACTOR} of 1024")
    program = write(folder, files)
    context = Context(program=program, incident=Incident(log=(at,)))
    best = max(find_codemod("scale_every_loss")(context), key=lambda one: one.belief, default=None)
    edits = best.edits if best is not None else ()
    return {
        name: splice(text, [one for one in edits if one.file == str(folder / name)]) or ""
        for name, text in files.items()
    }


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_the_rest_stays(source: str, tmp_path: pathlib.Path) -> None:
    """Nothing is written where it is open which scaler is meant, or who else uses the function."""
    assert mended({"train.py": source}, tmp_path, "train.py") == {"train.py": source}


@pytest.mark.parametrize(("source", "lines"), WRONG.values(), ids=WRONG)
def test_the_loss_is_scaled(source: str, lines: list[str], tmp_path: pathlib.Path) -> None:
    """By the scaler of the function, its object, its module, or its callers."""
    after = mended({"train.py": source}, tmp_path, "train.py")["train.py"]
    compile(after, "train.py", "exec")
    assert [line[1:].strip() for line in diff_lines(source, after) if line.startswith("+")] == lines


def test_a_helper_in_another_file(tmp_path: pathlib.Path) -> None:
    """Its call hands the scaler down; a method of the same name is nobody's."""
    files = {
        "extra.py": PENALTY,
        "train.py": TOP
        + "import extra\n"
        + MAIN
        + "        opt.penalise(net, x)\n        extra.penalise(net, x)\n"
        + END,
    }
    after = mended(files, tmp_path, "extra.py")
    assert "def penalise(net, x, scaler):" in after["extra.py"]
    assert "        opt.penalise(net, x)\n        extra.penalise(net, x, scaler)\n" in after["train.py"]
