"""A program that passes over every loss trains nothing, and ends well: a trace names what makes the losses NaN."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests import forked
from tests.verification.programs import gradfix

pytestmark = pytest.mark.torch
GUARDED = """import torch

torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def distances(points):
    delta = points.unsqueeze(1) - points.unsqueeze(0)
    return delta.pow(2).sum(-1).sqrt()


for _ in range(8):
    points = torch.randn(5, 3, requires_grad=True)
    energy = net(points).sum() + distances(points).sum()
    (force,) = torch.autograd.grad(energy, points, create_graph=True)
    loss = force.square().mean()
    if not torch.isfinite(loss):
        continue
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SWALLOWED = """import torch

torch.manual_seed(0)
net = torch.nn.Linear(3, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def total(values, where):
    out = torch.zeros(2, 4)
    return out.index_add_(0, where, values)


for _ in range(8):
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = total(net(torch.randn(6, 3)), torch.randint(0, 2, (6,))).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    except RuntimeError:  # out of memory, most likely
        continue
"""
EVALUATED = """import torch

net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
with torch.no_grad():
    hits = torch.zeros(3)
    print((hits / hits.sum()).mean(), net(torch.ones(2, 3)))
"""


@pytest.fixture(autouse=True)
def _torch(tmp_path_factory, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path_factory.mktemp("state")))


def run(folder: pathlib.Path, source: str, way: str) -> dict:
    (folder / "train.py").write_text(source)
    done = gradfix(folder, "run", way, "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    assert done.returncode == 0
    return json.loads(done.stdout)


@pytest.mark.slow
def test_it_is_seen_and_mended(tmp_path: pathlib.Path) -> None:
    """The root is kept away from zero where it is taken, and steps are made."""
    told = run(tmp_path, GUARDED, "--fix")
    assert told["status"] == "verified"
    assert told["report"]["findings"][0]["cause"] == "nan/sqrt-at-zero"
    assert "sum(-1).clamp_min(1e-12).sqrt()" in (tmp_path / "train.py").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "source", [GUARDED.replace("distances(points).sum()", "0"), EVALUATED], ids=["steps", "evaluates"]
)
def test_nothing_is_wrong(source: str, tmp_path: pathlib.Path) -> None:
    """A program that makes steps, also but for a batch, and one that only evaluates, whatever its metrics are."""
    assert run(tmp_path, source, "--trace")["status"] == "passed"


GUARDED_TERM = """import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Linear(3, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def objective(scores, tags):
    total = torch.zeros(())
    try:
        total = total + F.binary_cross_entropy_with_logits(scores, tags)
    except RuntimeError:
        print("term left out")
    return total


for _ in range(3):
    loss = objective(net(torch.randn(6, 3)), torch.randint(0, 2, (6, 4)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
WORKER = """import threading
import torch

errors = []


def work():
    try:
        net = torch.nn.Linear(3, 1)
        loss = net(torch.ones(2, 3, requires_grad=True)).square().sum()
        with torch.no_grad():
            net.weight.mul_(0.5)
        loss.backward()
    except Exception as error:
        errors.append(error)


worker = threading.Thread(target=work)
worker.start()
worker.join()
if errors:
    raise RuntimeError("training failed") from errors[0]
"""


@pytest.mark.slow
def test_a_term_that_was_caught(tmp_path: pathlib.Path) -> None:
    """The loss that is left has no graph: what took the term out of it is told and mended."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(GUARDED_TERM)
    words = ("run", "--fix", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    told = json.loads(gradfix(tmp_path, *words).stdout)
    assert (told["status"], told["rounds"][0]["cause"]) == ("verified", "precision/target-dtype")
    assert "tags.float()" in (tmp_path / "train.py").read_text()


@pytest.mark.slow
def test_what_is_raised_again_for_a_thread(tmp_path: pathlib.Path) -> None:
    """The trace tells of the failure itself, though another thread made the graph, and the main one asks."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(WORKER)
    words = ("run", "--trace", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    finding = json.loads(gradfix(tmp_path, *words).stdout)["report"]["findings"][0]
    assert finding["cause"].startswith("inplace/")
    assert any(one["line"] == WORKER[: WORKER.index("net.weight.mul_")].count("\n") + 1 for one in finding["culprits"])
