"""A setting is followed through the process or thread that is handed it."""

from __future__ import annotations

import ast

import pytest

from explainer.source.setting.flow import settings_behind
from tests.fix.rewriting import write

WORKER = """import threading
import tomllib
import torch.multiprocessing as mp


def worker(HEAD):
    print(cfg["lr"])


cfg = tomllib.loads(open("run.toml").read())
"""
STARTS = {
    "spawn": ("rank, port, cfg", "mp.spawn(worker, args=(29500, cfg), nprocs=2)"),
    "spawn by position": ("rank, cfg", "mp.spawn(worker, (cfg,), 2)"),
    "a process": ("rank, cfg", "mp.Process(target=worker, args=(0, cfg)).start()"),
    "a process of a context": ("rank, cfg", 'mp.get_context("spawn").Process(target=worker, args=[0, cfg]).start()'),
    "a thread, by name": ("rank, cfg", 'threading.Thread(target=worker, args=(0,), kwargs={"cfg": cfg}).start()'),
}
OTHERS = {
    "another place": ("rank, cfg", "mp.spawn(worker, args=(29500, cfg), nprocs=2)"),
    "another function": ("rank, cfg", "mp.Process(target=print, args=(0, cfg)).start()"),
    "arguments that are not written": ("rank, cfg", "mp.spawn(worker, args=given, nprocs=2)"),
}


def read(tmp_path, head: str, start: str) -> list[int]:
    """The lines of the settings behind what the worker prints."""
    program = write(
        tmp_path, {"train.py": WORKER.replace("HEAD", head) + start + "\n", "run.toml": "seed = 1\nlr = 0.1\n"}
    )
    (file,) = program.parsed()
    node = next(one for one in file.walk() if isinstance(one, ast.Subscript))
    return [one.line for one in settings_behind(node, file, program)]


@pytest.mark.parametrize(("head", "start"), STARTS.values(), ids=STARTS)
def test_a_worker_gets_what_it_is_started_with(tmp_path, head: str, start: str) -> None:
    """By place or by name; a spawned one gets its rank before."""
    assert read(tmp_path, head, start) == [2]


@pytest.mark.parametrize(("head", "start"), OTHERS.values(), ids=OTHERS)
def test_what_another_gets_is_not_taken(tmp_path, head: str, start: str) -> None:
    """Nothing is known of a parameter that no start hands the setting."""
    assert read(tmp_path, head, start) == []
