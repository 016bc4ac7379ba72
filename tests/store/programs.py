"""A project of two files with a fix for both, and a child process that applies or undoes it and is killed at a chosen step."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

from explainer.model.finding import Fix
from explainer.model.patch import FilePatch
from tests.conftest import ROOT

OLD = {"train.py": b"h += x\r\n", "model.py": "\ufeffclass N:\n\tpass  # é".encode()}
NEW = {"train.py": b"h = h + x\r\n", "model.py": "\ufeffclass M:\n\tpass  # é".encode()}

# Counts every call that touches the disk and kills its own process at the one whose number STEP names; of a write only
# half is done then. Installed through sitecustomize, so that the code under test is what runs for users.
KILLER = """
import os, signal, sys

step, names = int(os.environ["STEP"]), ("open", "write", "fsync", "replace", "unlink", "fchmod", "ftruncate", "utime")
calls = [0]

def wrap(name):
    real = getattr(os, name)

    def call(*given, **named):
        inside = sys._getframe(1).f_globals.get("__name__", "").startswith("explainer.")
        if inside:
            calls[0] += 1
            if calls[0] == step:
                if name == "write":
                    real(given[0], bytes(given[1])[: len(given[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
        return real(*given, **named)

    setattr(os, name, call)

def refuse(event, given):
    if event == "open" and str(given[0]).endswith((".py", ".json")) and (given[2] or 0) & (os.O_WRONLY | os.O_RDWR):
        if "explainer" not in str(given[0]):
            os._exit(3)  # a file is only ever renamed over, never opened for writing

sys.dont_write_bytecode = True
sys.addaudithook(refuse)
for name in names:
    wrap(name)
"""
CHILD = """
import sys
from tests.store.programs import fix_of, last_record
from explainer.workflow import apply, undo
from explainer.model.journal import Record

root = sys.argv[2]
done = apply(fix_of(root), cause="inplace/x", root=root) if sys.argv[1] == "apply" else undo(last_record(root))
sys.exit(0 if isinstance(done, Record) else f"refused: {done.reason}")
"""


def make_project(folder: pathlib.Path) -> pathlib.Path:
    folder.mkdir()
    for name, data in OLD.items():
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o640)
    return folder


def fix_of(root: str | pathlib.Path) -> Fix:
    changes = tuple(FilePatch(file=os.path.join(root, name), before=OLD[name], after=NEW[name]) for name in OLD)
    return Fix(id="f", title="Cure it", applicability="safe", kind="edit", patch="", changes=changes)


def last_record(root: str | pathlib.Path):
    from explainer.workflow import history

    return history(str(root))[-1]


def contents(root: pathlib.Path) -> dict[str, bytes]:
    """Every file of the project, hidden ones too."""
    return {path.name: path.read_bytes() for path in root.iterdir()}


def killed_at(step: int, action: str, root: pathlib.Path, folder: pathlib.Path) -> bool:
    """Run `action` in a child that dies at that step; whether it died."""
    site = folder / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(KILLER)
    run = subprocess.run(
        [sys.executable, "-c", CHILD, action, str(root)], capture_output=True, text=True, cwd=ROOT,
        env={**os.environ, "STEP": str(step), "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])},
    )  # fmt: skip
    assert run.returncode in (0, -9), run.stderr
    return run.returncode == -9
