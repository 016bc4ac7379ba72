"""What clears the gradients of a batch's parts stands before their loop, or behind the step."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Incident
from explainer.model.trace import CLEARED, TracedLine
from tests.fix.rewriting import best, line_of, write

HEAD = "def fit(net, opt, loader):\n    for step, batch in enumerate(loader):\n"
IN_PARTS = (
    HEAD
    + "        for part in batch.chunk(4):\n            opt.zero_grad()\n            net(part).mean().backward()\n        opt.step()\n"
)
BY_COUNT = (
    HEAD
    + "        opt.zero_grad()\n        net(batch).mean().backward()\n        if step % 4 == 3:\n            opt.step()\n"
)
WRONG = {
    "parts": (
        IN_PARTS,
        HEAD + "        opt.zero_grad()\n        for part in batch.chunk(4):\n            net(part).mean().backward()\n        opt.step()\n",
    ),
    "each fourth batch": (
        BY_COUNT,
        HEAD + "        net(batch).mean().backward()\n        if step % 4 == 3:\n            opt.step()\n            opt.zero_grad()\n",
    ),
}  # fmt: skip
RIGHT = {
    "a step of each round": HEAD
    + "        opt.zero_grad()\n        net(batch).mean().backward()\n        opt.step()\n",
    "an optimizer of the loop": IN_PARTS.replace("for part in batch.chunk(4)", "for part, opt in pairs"),
    "no backward in the loop": IN_PARTS.replace("            net(part).mean().backward()\n", "            net(part)\n"),
    "two steps": BY_COUNT + "        other.step()\n",
}


def moved(folder: pathlib.Path, source: str) -> str:
    program = write(folder, {"train.py": source})
    traced = TracedLine(
        kind=CLEARED, operation="zero_grad", file=str(folder / "train.py"), line=line_of(source, "zero_grad")
    )
    found = best("clear_before_loop", program, incident=Incident(traced=(traced,)))
    return splice(source, found.edits) or "" if found is not None else source


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_it_is_cleared_once(source: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """Before what adds up, or behind what used it."""
    assert moved(tmp_path, source) == wanted


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_the_rest_stays(source: str, tmp_path: pathlib.Path) -> None:
    """Where there is no such place."""
    assert moved(tmp_path, source) == source
