"""A repair in a copy: the project itself is read once and not touched, and nothing of what happens is remembered."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from explainer.errors import UsageError
from explainer.run import Job

MAX_BYTES = 4 << 30
MAX_FILES = 100_000
MAX_BESIDE = 1_000
# Linked, not copied: interpreters and histories, which a program reads.
_LINKED = frozenset((".git", ".hg", ".venv", "venv", "node_modules"))
_NOT_COPIED = frozenset(("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"))


@contextmanager
def rehearsed(job: Job) -> Iterator[Job]:
    """The job in a copy of its project, which is removed afterwards; paths of the project in the command lead into the copy.

    What lies beside the project is linked beside the copy, so that `../data` is there. The state folder is one of its own.

    Raises:
        UsageError: the project is too large to be copied.
    """
    check_size(job.root)
    with tempfile.TemporaryDirectory(prefix="gradfix-copy-", ignore_cleanup_errors=True) as place:
        around = os.path.join(os.path.realpath(place), "around")
        root = os.path.join(around, os.path.basename(job.root) or "project")
        os.mkdir(around)
        _link_beside(os.path.dirname(job.root), around, os.path.basename(job.root))
        shutil.copytree(job.root, root, symlinks=True, ignore=_left_out, ignore_dangling_symlinks=True)
        for name in _linked_in(job.root):
            os.symlink(os.path.join(job.root, name), os.path.join(root, name))
        command = tuple(_moved(word, job.root, root) for word in job.command)
        with _environment(job.root, root, os.path.join(place, "state")):
            yield replace(job, root=root, command=command)


def check_size(root: str) -> None:
    """Whether a project can be copied.

    Raises:
        UsageError: it is too large.
    """
    files = size = 0
    for here, folders, names in os.walk(root):
        folders[:] = [one for one in folders if not _is_left_out(here, one)]
        files += len(names)
        for name in names:
            try:
                size += os.lstat(os.path.join(here, name)).st_size
            except OSError:
                continue
        if files > MAX_FILES or size > MAX_BYTES:
            raise UsageError(
                f"{root} is too large to be copied (over {MAX_BYTES >> 30} GiB or {MAX_FILES:,} files): "
                "without --dry-run its files are put back unless an edit is verified"
            )


def _is_left_out(folder: str, name: str) -> bool:
    return name in _LINKED | _NOT_COPIED or os.path.isfile(os.path.join(folder, name, "pyvenv.cfg"))


def _left_out(folder: str, names: Sequence[str]) -> set[str]:
    return {one for one in names if _is_left_out(folder, one)}


def _linked_in(root: str) -> list[str]:
    """What stands at the root itself and is linked."""
    return [one for one in os.listdir(root) if _is_left_out(root, one) and one not in _NOT_COPIED]


def _link_beside(folder: str, around: str, own: str) -> None:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names if len(names) <= MAX_BESIDE else ():
        if name != own:
            os.symlink(os.path.join(folder, name), os.path.join(around, name))


def _moved(word: str, root: str, copy: str) -> str:
    """A word of the command, `/project/run.yaml` or `--config=/project/run.yaml`, as one of the copy."""
    head, equals, tail = word.partition("=")
    path = tail if equals and head.startswith("-") else word
    if not os.path.isabs(path):
        return word
    inner = os.path.relpath(os.path.realpath(path), root)
    first = inner.partition(os.sep)[0]
    if first == os.pardir or _is_left_out(root, first):
        return word
    new = copy if inner == os.curdir else os.path.join(copy, inner)
    return f"{head}={new}" if path is tail else new


@contextmanager
def _environment(root: str, copy: str, state: str) -> Iterator[None]:
    """A state folder of its own; modules of the project, also of one that is installed in place, come from the copy."""
    before = {name: os.environ.get(name) for name in ("PYTHONPATH", "GRADFIX_STATE_DIR")}
    given = [one for one in (before["PYTHONPATH"] or "").split(os.pathsep) if one]
    is_installed = any(os.path.isfile(os.path.join(root, one)) for one in ("pyproject.toml", "setup.py", "setup.cfg"))
    own = [os.path.join(copy, "src"), copy] if is_installed else []
    found = [*(_moved(one, root, copy) for one in given), *(one for one in own if os.path.isdir(one))]
    os.environ["GRADFIX_STATE_DIR"] = state
    if found:
        os.environ["PYTHONPATH"] = os.pathsep.join(found)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
