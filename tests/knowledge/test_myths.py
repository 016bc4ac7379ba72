"""Every myth is an experiment that runs: its assertions hold on the installed torch, so that what `myth.toml` says is true."""

from __future__ import annotations

import ast
import importlib.util
import pathlib

import pytest

from tests.knowledge.reproducer import KNOWLEDGE

EXPERIMENTS = sorted((KNOWLEDGE / "myths").glob("*/experiment.py"))


def missing_imports(path: pathlib.Path) -> list[str]:
    """The libraries that an experiment imports and that are not installed."""
    tree = ast.parse(path.read_text())
    modules = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    tops = dict.fromkeys(one.partition(".")[0] for one in modules)
    return [one for one in tops if importlib.util.find_spec(one) is None]


@pytest.mark.torch
@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.parent.name)
def test_experiment(path: pathlib.Path, runner: Runner) -> None:
    """The experiment prints its figures and ends well: its statement holds on this release."""
    missing = missing_imports(path)
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    run = runner.run(path)
    assert run.status == 0, run.output[-2000:]
    assert len([line for line in run.output.splitlines() if ": " in line]) >= 2


def test_there_are_enough() -> None:
    """The table covers the remedies that users meet; an empty folder would pass every other test."""
    assert len(EXPERIMENTS) >= 25


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.parent.name)
def test_what_was_printed_fits_the_program(path: pathlib.Path) -> None:
    """The recording holds the labels that the program prints today: it was not left behind by a change."""
    tree = ast.parse(path.read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"]
    recorded = (path.parent / "printed" / "2.13.0.txt").read_text()
    for call in calls:
        first = call.args[0].values[0] if isinstance(call.args[0], ast.JoinedStr) else call.args[0]
        assert isinstance(first, ast.Constant)
        assert str(first.value) in recorded, ast.unparse(call)
