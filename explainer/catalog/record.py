"""Runs a reproducer in an interpreter that has torch, and records what it prints with the releases that printed it."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from dataclasses import dataclass

from explainer.errors import RuleError

TIMEOUT = 300
_ASK = """
import importlib.metadata, json, platform, sys, sysconfig
def version(name):
    try: return importlib.metadata.version(name).partition("+")[0]
    except importlib.metadata.PackageNotFoundError: return None
print(json.dumps({"python": platform.python_version().rpartition(".")[0], "base": sys.base_prefix,
    "packages": sysconfig.get_paths()["purelib"], "versions": {name: version(name) for name in sys.argv[1:]}}))
"""
_ENVIRONMENT = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a reproducer printed: its exit status, the text with its header, and the file that it belongs into."""

    shape: str
    status: int
    text: str
    path: str


def shapes_of(folder: str, cause: str) -> list[str]:
    """The shapes of a cause, each a folder with `broken.py`; empty where it has none."""
    place = os.path.join(folder, cause)
    return sorted(name for name in os.listdir(place) if os.path.isfile(os.path.join(place, name, "broken.py")))


def record_shape(folder: str, cause: str, shape: str, python: str) -> Recording:
    """Run the shape's `broken.py` with the interpreter `python`.

    Raises:
        RuleError: the interpreter does not start, has no torch, or the program runs for more than five minutes.
    """
    place = os.path.join(os.path.abspath(folder), cause, shape)
    if os.path.dirname(python):  # it runs in the reproducer's folder, where a relative path leads elsewhere
        python = os.path.abspath(python)
    asked = _describe(python, ["torch", *_imports(os.path.join(place, "broken.py"))])
    versions = {name: found for name, found in asked.versions.items() if found}
    if "torch" not in versions:
        raise RuleError(f"{python} has no torch; name an interpreter that has: --python PATH")
    try:
        run = subprocess.run(
            [python, "broken.py"], check=False, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", timeout=TIMEOUT, env={**os.environ, **_ENVIRONMENT}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise RuleError(f"{cause}/{shape}/broken.py ran for more than {TIMEOUT} seconds") from None
    header = " ".join(f"{name}={version}" for name, version in {"python": asked.python, **versions}.items())
    text = f"# origin=recorded {header}\n" + _neutral(run.stdout, place, asked)
    path = os.path.join(place, "printed", f"{versions['torch']}.txt")
    return Recording(shape=shape, status=run.returncode, text=text, path=path)


def _imports(path: str) -> list[str]:
    """The distributions, other than torch, that a program imports; named as their modules are."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return sorted({name.partition(".")[0] for name in names} - {"torch", "os", "sys"})


@dataclass(frozen=True, slots=True)
class _Interpreter:
    python: str
    base: str
    packages: str
    versions: dict[str, str | None]


def _describe(python: str, packages: list[str]) -> _Interpreter:
    try:
        run = subprocess.run([python, "-c", _ASK, *packages], capture_output=True, text=True, timeout=60, check=True)
        return _Interpreter(**json.loads(run.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, TypeError) as error:
        raise RuleError(f"{python}: this interpreter does not answer ({type(error).__name__})") from error


def _neutral(text: str, place: str, asked: _Interpreter) -> str:
    """The output without what belongs to one machine: paths, the user's name, caches."""
    short = f"/home/user/.venv/lib/python{asked.python}/site-packages"
    text = text.replace(asked.packages, short).replace(place, "/home/user/project").replace(asked.base, "/usr/local")
    text = text.replace(os.path.expanduser("~"), "/home/user")
    return re.sub(r"torchinductor_\w+", "torchinductor_user", text)
