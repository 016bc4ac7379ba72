"""A flag that was told no on the command line, and that `type=bool` reads as yes."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.fix.codemod import Context, find_codemod
from explainer.model.incident import TOLD_NO, Fact
from explainer.repair import repair
from explainer.run import Job
from tests import forked
from tests.fix.rewriting import failed, write

PARSER = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--freeze-encoder", type=bool, default=True)
parser.add_argument("--verbose", type=bool, default=False)
parser.add_argument("--steps", type=int, default=3)
args = parser.parse_args()
"""
TRAIN = """import contextlib
import torch
encoder, head = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
opt = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
for _ in range(args.steps):
    with torch.no_grad() if args.freeze_encoder else contextlib.nullcontext():
        hidden = encoder(torch.randn(4, 3))
    loss = head(hidden).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(("told", "count"), [(["--freeze-encoder"], 1), ([], 0), (["--steps"], 0), (["--freeze"], 0)])
def test_only_what_was_told_no(tmp_path: pathlib.Path, told: list[str], count: int) -> None:
    """Flags that are left alone, numbers and other options stay."""
    program = write(tmp_path, {"train.py": PARSER})
    incident = replace(failed(), facts=tuple(Fact(name=TOLD_NO, value=one) for one in told))
    found = list(find_codemod("flag_of_words")(Context(program=program, incident=incident)))
    assert [one.culprit.line for one in found] == [3] * count


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("words", [["--freeze-encoder", "False"], ["--freeze-encoder=no"]])
def test_the_flag_is_read_as_it_was_meant(
    tmp_path: pathlib.Path, tmp_path_factory, monkeypatch, words: list[str]
) -> None:
    """The encoder trains, by an edit of the flag alone; with the default it is frozen on purpose."""
    pytest.importorskip("torch")
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path_factory.mktemp("state")))
    (tmp_path / "train.py").write_text(PARSER + TRAIN)
    job = Job(command=(forked.python(), "train.py", *words), root=str(tmp_path), catalog=load_catalog())
    done = repair(job, lambda *_: None, lambda _: None)
    assert done.status == "verified"
    changed = (tmp_path / "train.py").read_text()
    assert changed == (PARSER + TRAIN).replace(
        '"--freeze-encoder", type=bool',
        '"--freeze-encoder", type=lambda text: text.lower() in ("1", "true", "yes", "on")',
    )
