"""Which interpreter a failure belongs to, and where its packages lie."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Sequence
from typing import NamedTuple

from explainer.model.environment import EnvironmentFact, Unread
from explainer.model.incident import Incident

_PACKAGES = re.compile(r"^(?P<folder>.*[/\\](?:site|dist)-packages)[/\\]")


class Interpreter(NamedTuple):
    """An interpreter: what is known of it, its site-packages folders, and what could not be found."""

    fact: EnvironmentFact | None
    folders: tuple[str, ...]
    unread: tuple[Unread, ...] = ()


def find_interpreter(python: str | None, named: Sequence[str] = ()) -> Interpreter:
    """The interpreter at `python`, else that of the site-packages `named` by a traceback, else VIRTUAL_ENV, else ours."""
    if python is not None:
        return _of_executable(python)
    if named:
        return _of_folders(tuple(named), "site-packages that the traceback names")
    active = os.environ.get("VIRTUAL_ENV")
    if active and os.path.realpath(active) != os.path.realpath(sys.prefix):
        return _of_prefix(active, "VIRTUAL_ENV")
    return _ours()


def folders_named_by(incident: Incident) -> tuple[list[str], list[str]]:
    """The site-packages folders in an incident's frames: those that are here, and those that are not."""
    here: dict[str, None] = {}
    elsewhere: dict[str, None] = {}
    frames = [frame for record in incident.exceptions for frame in record.frames]
    files = [frame.file for frame in (*frames, *incident.forward_frames)]
    files.extend(warning.file for warning in incident.warnings if warning.file)
    for file in files:
        found = _PACKAGES.match(os.path.expanduser(file))
        if found:
            (here if os.path.isdir(found["folder"]) else elsewhere).setdefault(found["folder"])
    return list(here), list(elsewhere)


def _ours() -> Interpreter:
    version = ".".join(map(str, sys.version_info[:3]))
    folders = tuple(dict.fromkeys(path for path in sys.path if path.endswith(("site-packages", "dist-packages"))))
    return Interpreter(EnvironmentFact(name="python", value=version, source=sys.executable), folders)


def _of_executable(python: str) -> Interpreter:
    import shutil

    path = shutil.which(python) or python
    if not os.path.isfile(path):
        return Interpreter(None, (), (Unread(what="python", why=f"{python}: no such interpreter"),))
    prefix = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    found = _of_prefix(prefix, path)
    return found if found.folders else _asked(path)


def _of_prefix(prefix: str, source: str) -> Interpreter:
    patterns = ("lib/python3*/site-packages", "lib/python3*/dist-packages", "Lib/site-packages")
    folders = tuple(
        path for pattern in patterns for path in sorted(glob.glob(os.path.join(glob.escape(prefix), pattern)))
    )
    if not folders:
        return Interpreter(None, (), (Unread(what="packages", why=f"{prefix} holds no site-packages"),))
    return _of_folders(folders, source)


def _of_folders(folders: tuple[str, ...], source: str) -> Interpreter:
    found = re.search(r"python(3\.\d+)", folders[0])
    prefix = re.split(r"[/\\][Ll]ib(?:64)?[/\\]", folders[0])[0]
    version = _configured_version(prefix) or (found[1] if found else None)
    fact = EnvironmentFact(name="python", value=version, source=source) if version else None
    unread = () if fact else (Unread(what="python", why=f"{prefix} does not tell its version"),)
    return Interpreter(fact, folders, unread)


def _configured_version(prefix: str) -> str | None:
    """The version that a virtual environment's `pyvenv.cfg` states."""
    try:
        with open(os.path.join(prefix, "pyvenv.cfg"), encoding="utf-8") as file:
            found = re.search(r"^version(?:_info)?\s*=\s*(3\.\d+(?:\.\d+)?)", file.read(10_000), re.MULTILINE)
    except OSError:
        return None
    return found[1] if found else None


def _asked(path: str) -> Interpreter:
    """Ask the interpreter itself, isolated and briefly: for layouts that keep packages in unusual places."""
    import subprocess

    code = "import sys, json; print(json.dumps(['.'.join(map(str, sys.version_info[:3])), sys.path]))"
    try:
        run = subprocess.run([path, "-I", "-c", code], capture_output=True, text=True, timeout=2.0, check=True)
        import json

        version, paths = json.loads(run.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return Interpreter(None, (), (Unread(what="python", why=f"{path}: {type(error).__name__}"),))
    folders = tuple(one for one in paths if one.endswith(("site-packages", "dist-packages")))
    return Interpreter(EnvironmentFact(name="python", value=version, source=path), folders)
