"""An exception of this process is explained with the environment in which it was raised."""

from __future__ import annotations

import pathlib
import runpy

import pytest

torch = pytest.importorskip("torch")

from explainer.model.finding import Finding  # noqa: E402
from explainer.workflow import explain  # noqa: E402

SOURCE = """import os
from torch import nn
import torch

FREEZE = bool(os.environ.get("TUNE_FREEZE", ""))
net = nn.Linear(3, 2)
if FREEZE:
    net.requires_grad_(False)
net(torch.ones(1, 3)).sum().backward()
"""


def found(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, word: str) -> Finding:
    (folder / "train.py").write_text(SOURCE)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TUNE_FREEZE", word)
    try:
        runpy.run_path(str(folder / "train.py"), run_name="__main__")
    except RuntimeError as error:
        return explain(error).findings[0]
    pytest.fail("it trains")


def test_a_word_for_no(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable says no, and the flag reads yes."""
    finding = found(tmp_path, monkeypatch, "no")
    assert (finding.cause, finding.culprits[0].line) == ("no-graph/all-parameters-frozen", 5)
    assert ".strip().lower() in" in (finding.fixes[0].patch or "")


def test_a_word_for_yes(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it was meant."""
    finding = found(tmp_path, monkeypatch, "yes")
    assert "strip" not in "".join(one.patch or "" for one in finding.fixes)
