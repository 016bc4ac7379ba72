"""A schedule that goes on in the middle is made behind the loading of the optimizer's state."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Proposal
from explainer.fix.splice import splice
from explainer.model.incident import ExceptionRecord, Frame
from tests.fix.rewriting import best, diff_lines, failed, line_of, write

HEAD = """import torch
from torch.optim.lr_scheduler import LambdaLR


def resume(opt, path):
    state = torch.load(path)
    opt.load_state_dict(state["optimizer"])
    return state


def train(model, path, start, f):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
MADE = "    scheduler = LambdaLR(optimizer, f, last_epoch=start - 1)\n"
BELOW = {
    "in a block": '    if path:\n        optimizer.load_state_dict(torch.load(path)["optimizer"])\n    fit(scheduler)\n',
    "in a helper": "    state = resume(optimizer, path)\n    fit(scheduler)\n",
}


def proposed(source: str, folder: pathlib.Path) -> Proposal | None:
    program = write(folder, {"train.py": source})
    line = line_of(source, "LambdaLR(optimizer")
    code = source.splitlines()[line - 1].strip()
    frame = Frame(file=str(folder / "train.py"), line=line, function="train", code=code)
    message = "param 'initial_lr' is not specified in param_groups[0] when resuming scheduler with last_epoch >= 0."
    raised = ExceptionRecord(type="KeyError", message=message, frames=(frame,))
    return best("schedule_behind_restore", program, incident=replace(failed(), exceptions=(raised,)))


@pytest.mark.parametrize("below", BELOW.values(), ids=BELOW)
def test_it_is_made_behind_the_state(tmp_path: pathlib.Path, below: str) -> None:
    """Behind the statement that loads it, or calls what does."""
    source = HEAD + MADE + below
    proposal = proposed(source, tmp_path)
    assert proposal is not None
    after = splice(source, proposal.edits) or ""
    first = below.splitlines()
    lines = [*first[:-1], MADE.rstrip("\n"), first[-1]]
    assert after == HEAD + "\n".join(lines) + "\n"


def test_a_schedule_with_a_state_of_its_own(tmp_path: pathlib.Path) -> None:
    """It gets its place from that."""
    load = (
        '    optimizer.load_state_dict(torch.load(path)["o"])\n    scheduler.load_state_dict(torch.load(path)["s"])\n'
    )
    source = HEAD + MADE + load
    proposal = proposed(source, tmp_path)
    assert proposal is not None
    added = [one for one in diff_lines(source, splice(source, proposal.edits) or "") if one.startswith("+")]
    assert added == ["+    scheduler = LambdaLR(optimizer, f)"]


@pytest.mark.parametrize(
    "below",
    [
        "    fit(scheduler)\n",
        '    other.load_state_dict(torch.load(path)["optimizer"])\n',
        '    fit(scheduler)\n    optimizer.load_state_dict(torch.load(path)["optimizer"])\n',
    ],
    ids=["nothing is loaded", "another one's state", "it is used before"],
)
def test_others_stay(tmp_path: pathlib.Path, below: str) -> None:
    """Where the first learning rate is to come from is then the author's to say."""
    assert proposed(HEAD + MADE + below, tmp_path) is None
