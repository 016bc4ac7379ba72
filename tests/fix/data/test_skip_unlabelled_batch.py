"""The odd batch of which no label counts is left out; where many are so, or a step gathers several batches, nothing is."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import NAN_STEPS, SEEN, LogLine
from explainer.model.trace import NOT_FINITE, TracedLine
from tests.fix.rewriting import changed_lines, failed, line_of, write

LOOP = """for epoch in range(3):
    for step, batch in enumerate(loader):
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(loss.item())
"""
SKIPS = ['if (batch["labels"] == -100).all():', "continue"]
CASES = {
    "a batch that is unpacked": (LOOP, "4 of 51", SKIPS),
    "labels by name": (
        LOOP.replace("(**batch)", "(x, labels=y)").replace("step, batch", "step, (x, y)"),
        "1 of 51",
        ["if (y == -100).all():", "continue"],
    ),
    "many": (LOOP, "20 of 51", []),
    "batches that are gathered": (
        LOOP.replace("        optimizer.step()\n", "        if step % 4 == 3:\n            optimizer.step()\n"),
        "4 of 51",
        [],
    ),
    "a batch that is not seen": (LOOP.replace("(**batch)", "(batch)"), "4 of 51", []),
}


@pytest.mark.parametrize(("source", "said", "lines"), CASES.values(), ids=CASES)
def test_the_odd_batch(source: str, said: str, lines: list[str], tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "train.py")
    program = write(tmp_path, {"train.py": source})
    log = (LogLine(text=SEEN + NAN_STEPS.format(*said.split(" of "))),)
    traced = TracedLine(kind=NOT_FINITE, operation="cross_entropy", file=path, line=line_of(source, "loss = "))
    incident = replace(failed(), log=log, traced=(traced,))
    found = list(find_codemod("skip_unlabelled_batch")(Context(program=program, incident=incident)))
    assert [changed_lines(source, splice(source, one.edits)) for one in found] == ([lines] if lines else [])
