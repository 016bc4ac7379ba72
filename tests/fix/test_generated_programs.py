"""Random programs with in-place writes: repaired edit by edit, their gradients equal those of the program as meant."""

from __future__ import annotations

import pathlib
import random
import runpy
import traceback

import pytest

from tests.fix.generated import make_pair

ROUNDS = 8


def run(path: pathlib.Path) -> dict | str:
    """The program's gradients, or the traceback of its failure."""
    try:
        return runpy.run_path(str(path))["grads"]
    except RuntimeError:
        return traceback.format_exc()


def repair(path: pathlib.Path, catalog) -> dict | str:
    """Run, explain, take the first edit, until the program runs; what it ends with."""
    from explainer.ingest.text import read_text
    from explainer.workflow import explain_incident, plan_report

    for _ in range(ROUNDS):
        done = run(path)
        if not isinstance(done, str):
            return done
        (incident, *_) = read_text(done)
        report = plan_report(explain_incident(incident, None, catalog), catalog, str(path.parent))
        changes = [fix.changes for finding in report.findings for fix in finding.fixes if fix.changes]
        if not changes:
            return f"no edit for\n{done}"
        for change in changes[0]:
            pathlib.Path(change.file).write_bytes(change.after)
    return "still failing"


def check(seed: int, folder: pathlib.Path, catalog) -> str | None:
    """What is wrong with the repair of one program; None where nothing is."""
    import torch

    pair = make_pair(random.Random(seed))
    (folder / "meant.py").write_text(pair.meant)
    path = folder / "train.py"
    path.write_text(pair.written)
    wanted, got = run(folder / "meant.py"), repair(path, catalog)
    assert isinstance(wanted, dict), wanted
    if isinstance(got, str):
        return got
    wrong = [name for name, grad in wanted.items() if not _equal(torch, grad, got[name])]
    return f"other gradients: {wrong}\n{pair.written}\n--- became\n{path.read_text()}" if wrong else None


def _equal(torch, one, other) -> bool:
    if one is None or other is None:
        return one is other
    return torch.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True)


@pytest.mark.torch
@pytest.mark.parametrize("seed", range(60))
def test_repaired(seed: int, tmp_path: pathlib.Path, catalog) -> None:
    """Sixty programs; a thousand under `slow`."""
    pytest.importorskip("torch")
    assert check(seed, tmp_path, catalog) is None


@pytest.mark.torch
@pytest.mark.slow
def test_a_thousand(tmp_path: pathlib.Path, catalog) -> None:
    """The long run."""
    pytest.importorskip("torch")
    wrong = {seed: fault for seed in range(1000) if (fault := check(seed, tmp_path, catalog))}
    assert wrong == {}
