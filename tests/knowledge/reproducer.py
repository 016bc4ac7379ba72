"""The reproducers of the rule base: where they lie, what they need, and a process that runs them."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

from packaging.requirements import Requirement

from explainer.catalog.source import read_toml
from tests.conftest import ROOT

KNOWLEDGE = ROOT / "knowledge"
SHARED_IMPORTS = ("torch", "torch._dynamo", "transformers", "transformers.trainer", "peft", "accelerate")
TIMEOUT = 180
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "GLOO_SOCKET_IFNAME": "lo",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a program did: exit status (None: killed), output, and each trainable parameter's gradients (None: unseen)."""

    status: int | None
    output: str
    gradients: list[dict[str, Any]] | None


@dataclass(frozen=True)
class Shape:
    """A folder with `broken.py`, `fixed.py` and `printed/`."""

    folder: pathlib.Path

    @property
    def name(self) -> str:
        """`family/cause/shape`."""
        return str(self.folder.relative_to(KNOWLEDGE))

    @property
    def cause(self) -> str:
        """`family/cause`."""
        return str(self.folder.parent.relative_to(KNOWLEDGE))

    @property
    def raw(self) -> dict[str, Any]:
        """The cause's `cause.toml`."""
        return _read_cause(self.folder.parent)

    @property
    def is_failure(self) -> bool:
        """Whether the program fails, rather than runs through with wrong gradients or a harmless warning."""
        return str(self.raw.get("kind", "failure")) == "failure"

    def missing(self) -> list[str]:
        """What this machine lacks to run the shape: `needs` of the cause, and libraries that the program imports."""
        wanted = [need for need in self.raw.get("needs", ()) if not _is_met(need)]
        tree = ast.parse((self.folder / "broken.py").read_text())
        modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        modules |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        tops = sorted({one.partition(".")[0] for one in modules})
        return list(dict.fromkeys([*wanted, *(one for one in tops if importlib.util.find_spec(one) is None)]))


def _is_met(need: str) -> bool:
    if need == "cuda":
        if importlib.util.find_spec("torch") is None:
            return False
        import torch

        return torch.cuda.is_available()
    wanted = Requirement(need)
    try:
        return wanted.specifier.contains(importlib.metadata.version(wanted.name), prereleases=True)
    except importlib.metadata.PackageNotFoundError:
        return False


@cache
def shapes() -> tuple[Shape, ...]:
    """Every shape of every cause."""
    return tuple(Shape(path.parent) for path in sorted(KNOWLEDGE.glob("*/*/*/broken.py")))


@cache
def _read_cause(folder: pathlib.Path) -> dict[str, Any]:
    return read_toml(str(folder / "cause.toml"), str(folder.relative_to(KNOWLEDGE)))


class Runner:
    """A server of `server.py`, started at the first program."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None

    def run(self, script: pathlib.Path, timeout: float = TIMEOUT) -> Run:
        """Run a program in a process of its own."""
        server = self._started()
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(json.dumps({"script": str(script), "timeout": timeout}) + "\n")
        server.stdin.flush()
        return Run(**json.loads(server.stdout.readline()))

    def close(self) -> None:
        """End the server."""
        if self._server is not None and self._server.stdin is not None:
            self._server.stdin.close()
            self._server.wait()

    def _started(self) -> subprocess.Popen[str]:
        if self._server is None:
            command = [sys.executable, str(pathlib.Path(__file__).with_name("server.py")), *SHARED_IMPORTS]
            environment = {**os.environ, **ENVIRONMENT}
            self._server = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
            )
            assert self._server.stdout is not None
            while self._server.stdout.readline().strip() != "ready":
                assert self._server.poll() is None, "the server did not start"
        return self._server
