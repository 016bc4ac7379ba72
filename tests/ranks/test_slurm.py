"""Jobs of four ranks under a real Slurm, where one is set up on this machine; run by hand."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from tests.conftest import PATH
from tests.ranks.jobs import write_job

NUMBERED = """
import os, sys
import train
from train import dist, timedelta

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29637")
rank, world = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
dist.init_process_group("gloo", rank=rank, world_size=world, timeout=timedelta(seconds=float(sys.argv[3])))
train.train(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
"""
GRADFIX = (sys.executable, "-m", "gradfix", "run", "--no-probe", "--report-dir", "reports", "--")
STEP = ("srun", "--ntasks=4", "--overcommit")
FORMS = {"one for the job": (*GRADFIX, *STEP, sys.executable), "one for each rank": (*STEP, *GRADFIX, sys.executable)}


def is_there() -> bool:
    """Whether a cluster answers."""
    return shutil.which("srun") is not None and subprocess.run(["sinfo"], capture_output=True).returncode == 0


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.skipif(not is_there(), reason="needs a Slurm")
@pytest.mark.parametrize("command", FORMS.values(), ids=FORMS)
def test_under_srun(tmp_path: pathlib.Path, command: tuple[str, ...]) -> None:
    """The rank that failed by itself is told once, whichever way round the two are started."""
    write_job(tmp_path)
    (tmp_path / "numbered.py").write_text(NUMBERED)
    environment = {**os.environ, "PYTHONPATH": PATH, "GRADFIX_STATE_DIR": str(tmp_path / "state")}
    done = subprocess.run(
        [*command, "numbered.py", "fail", "2", "20"],
        capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=280,
    )  # fmt: skip
    assert done.returncode == 1
    said = [
        line for line in done.stderr.splitlines() if line.startswith("rank 2 failed first, after 3 optimizer steps")
    ]
    assert len(said) == 1
