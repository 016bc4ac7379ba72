"""What a report left in `.grad` is cleared before the backward of the whole loss."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Incident
from explainer.model.trace import AGAIN, COUNTED, TracedLine
from tests.fix.rewriting import best, line_of, write

STEP = """def fit(net, opt, loader):
    for batch in loader:
        opt.zero_grad()
        terms = losses(net, batch)
        for term in terms:
            term.backward(retain_graph=True)
            print(norm(net))
        sum(terms).backward()
        opt.step()
"""
MICRO = """def fit(net, opt, loader):
    for batch in loader:
        opt.zero_grad()
        for part in batch.chunk(4):
            terms = losses(net, part)
            terms[0].backward(retain_graph=True)
            sum(terms).backward()
        opt.step()
"""
ELSEWHERE = """def fit(net, loader):
    for batch in loader:
        terms = losses(net, batch)
        terms[0].backward(retain_graph=True)
        sum(terms).backward()
"""


def cleared(folder: pathlib.Path, source: str) -> str:
    program = write(folder, {"train.py": source})
    file = str(folder / "train.py")
    early = TracedLine(kind=COUNTED, operation="backward", file=file, line=line_of(source, "retain_graph"))
    again = TracedLine(kind=AGAIN, operation="backward", file=file, line=line_of(source, "sum(terms)"))
    found = best("clear_before_whole", program, incident=Incident(traced=(early, again)))
    return splice(source, found.edits) or "" if found is not None else source


def test_it_is_cleared_as_the_step_does(tmp_path: pathlib.Path) -> None:
    """The same statement, before the backward that counts."""
    wanted = STEP.replace("        sum(terms)", "        opt.zero_grad()\n        sum(terms)")
    assert cleared(tmp_path, STEP) == wanted


@pytest.mark.parametrize("source", [MICRO, ELSEWHERE], ids=["micro batches", "nobody clears here"])
def test_the_rest_stays(source: str, tmp_path: pathlib.Path) -> None:
    """What is cleared there would be another batch's, or nobody knows by what."""
    assert cleared(tmp_path, source) == source
