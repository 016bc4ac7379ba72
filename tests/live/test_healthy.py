"""Healthy programs: nothing is held against them. Some quick ones always, all of them with `-m slow`."""

from __future__ import annotations

import importlib.util
import pathlib
import shutil

import pytest

from explainer.verification.judge import silent_faults
from explainer.verification.verify import Watch, verify_command
from tests import forked
from tests.conftest import ROOT
from tests.live.running import run

pytestmark = pytest.mark.torch


@pytest.fixture
def program(request, tmp_path: pathlib.Path) -> pathlib.Path:
    """A healthy program in a folder of its own."""
    pytest.importorskip("torch")
    shutil.copy(ROOT / "benchmarks" / "healthy" / f"{request.param}.py", tmp_path / "train.py")
    return tmp_path


@pytest.mark.parametrize("program", ["guarded_gradients"], indirect=True)
def test_a_run_is_silent(program: pathlib.Path) -> None:
    """No report, and nothing seen that could be one."""
    done, _ = run(program, "train.py")
    assert (done.status, done.report, silent_faults(done.processes)) == (0, None, ())
    assert sum(dict(done.processes[0].steps).values()) > 3


@pytest.mark.parametrize("program", ["scaler_fused"], indirect=True)
def test_a_verification_is_green(program: pathlib.Path) -> None:
    """Overflow that a GradScaler or the program itself throws away is no fault."""
    proof = verify_command((forked.python(), "train.py"), str(program), Watch())
    assert (proof.verdict, proof.reasons) == ("green", ())


@pytest.mark.slow
def test_no_false_alarm() -> None:
    """The whole benchmark, with the tracer; its figures stand in benchmarks/results/healthy.md."""
    pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location("healthy", ROOT / "benchmarks" / "healthy.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main([]) == 0
