"""A callback for a module comes once that module has all its names, whoever imports what first."""

from __future__ import annotations

import importlib
import importlib.machinery
import pathlib
import subprocess
import sys

import pytest

from explainer.live.imports import after_import
from tests.conftest import ROOT
from tests.live.test_noting import run

ASK = "after_import('outer', lambda module: print('told of', module.Trainer.__name__))\n"
HEAD = f"""import os, sys
sys.path.insert(0, {str(ROOT)!r})
from explainer.live.imports import after_import
"""
OUTER = """import inner, os
if os.environ.pop("FAILS", None):
    raise ImportError("once")
class Trainer: pass
"""
INNER = f"""from __main__ import asks, after_import
if asks:
    {ASK}"""
PROGRAMS = {
    "imported before": f"asks = False\nimport outer\n{ASK}",
    "imported behind": f"asks = False\n{ASK}import outer\n",
    "being imported": "asks = True\nimport outer\n",
    "an import that fails at first": (
        "asks = True\nos.environ['FAILS'] = '1'\ntry:\n    import outer\nexcept ImportError:\n    import outer\n"
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_module_has_its_names(name: str, tmp_path: pathlib.Path) -> None:
    """`inner` stands for torch, `outer` for a library that imports it."""
    for file, text in (("outer", OUTER), ("inner", INNER), ("program", HEAD + PROGRAMS[name])):
        (tmp_path / f"{file}.py").write_text(text)
    environment = {"GRADFIX_DEBUG": "1"}  # what the callback raises comes through
    ended = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=True, env=environment
    )
    assert ended.stdout == "told of Trainer\n"


def test_a_spec_is_left_as_it_was(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of ours stays on the module."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "begun_module.py").write_text(
        "from explainer.live.imports import after_import\nafter_import(__name__, lambda module: module.SEEN.append(1))\nSEEN = []\n"
    )
    module = importlib.import_module("begun_module")
    assert module.SEEN == [1]
    assert type(module.__spec__) is importlib.machinery.ModuleSpec and not hasattr(module.__spec__, "waiting")


def test_what_is_there_is_told_at_once() -> None:
    seen: list[str] = []
    after_import("json", lambda module: seen.append(module.__name__))
    assert seen == ["json"]


FIRST = """import tempfile
from transformers import Trainer, TrainingArguments, set_seed
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        self.seen = 0
    def forward(self, x):
        self.seen += 1
        return {"loss": self.layer(x).mean() * (float("nan") if self.seen > SOUND else 1.0)}
set_seed(0)
with tempfile.TemporaryDirectory() as out:
    args = TrainingArguments(output_dir=out, max_steps=8, report_to="none", use_cpu=True, disable_tqdm=True, save_strategy="no")
    Trainer(model=Net(), args=args, train_dataset=[{"x": torch.ones(2)}] * 64).train()
"""


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize(("sound", "is_told"), [(4, True), (99, False)], ids=["spoilt", "sound"])
def test_a_program_that_imports_a_trainer_first(sound: int, is_told: bool, tmp_path: pathlib.Path) -> None:  # noqa: FBT001
    """transformers imports torch itself, in the midst of its trainer: the steps are seen all the same."""
    pytest.importorskip("transformers")
    (tmp_path / "train.py").write_text(FIRST.replace("SOUND", str(sound)))
    done, _ = run(tmp_path, "train.py")
    (process,) = done.processes
    assert process.steps == (("0 AdamW", 8),)
    assert bool(done.report) == is_told and bool(process.not_finite) == is_told
