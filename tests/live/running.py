"""Runs a program under the recorder, as `gradfix run` does."""

from __future__ import annotations

import importlib.util
import pathlib

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.run import Job, Run, run_program
from tests import forked

LIBRARIES = ("transformers.trainer", "peft")


def needs(module: str) -> pytest.MarkDecorator:
    """A mark for tests whose programs import a module: these tests do not, and are collected in every process of them."""
    return pytest.mark.skipif(importlib.util.find_spec(module) is None, reason=f"needs {module}")


def run(folder: pathlib.Path, *command: str, python: str = "") -> tuple[Run, str]:
    """Run a command in a folder; what it reported and printed."""
    output: list[bytes] = []
    job = Job(command=(python or forked.python(), *command), root=str(folder), catalog=load_catalog())
    done = run_program(job, lambda _, data: output.append(data), is_shown=False)
    return done, b"".join(output).decode()


def run_on_transformers(folder: pathlib.Path, *command: str) -> tuple[Run, str]:
    """The same for a program that imports transformers or PEFT, which is there already."""
    return run(folder, *command, python=forked.python(*LIBRARIES))
