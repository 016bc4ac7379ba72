"""The folder that the processes of a run report into: a temporary one, or one on a file system that several nodes share.

A shared folder has one folder a run. In there each `gradfix run` leaves `run.NODE.PID.json`, each rank and attempt
`rank-RANK.ATTEMPT.NODE.PID.json` (its report), `.alive` (that it started) and `PID@NODE.stack` (where it stood). Every file has
one writer and appears whole, by rename; nothing is locked.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from explainer.errors import UnreadableInput, UsageError
from explainer.live.rank import ALIVE, LAUNCHERS
from explainer.verification.family import began
from explainer.verification.rank_file import STACK, read_alive, read_launches, read_started

SCHEMA = "gradfix.job/1"
RUN_ID = "GRADFIX_RUN_ID"
_STACKS_IN = 5.0  # seconds that processes have to write their stacks by themselves
_SETTLE = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFolder:
    """Where a run's processes report. `launch` tells what this `gradfix run` started from what others did."""

    path: str
    is_shared: bool
    launch: str
    node: str
    started: float
    command: tuple[str, ...]

    def write(self, **more: Any) -> None:
        """Say what this `gradfix run` does: that it has started, and at its end how that ended."""
        if not self.is_shared:
            return
        told = {
            "schema": SCHEMA, "launch": self.launch, "run": os.path.basename(self.path), "node": self.node, "pid": os.getpid(),
            "task": _task(), "started": self.started, "command": list(self.command), **more,
        }  # fmt: skip
        path = os.path.join(self.path, f"run.{self.node}.{os.getpid()}.json")
        with suppress(OSError):  # the reports tell what they can without it
            with open(f"{path}.part", "w", encoding="utf-8") as file:
                json.dump(told, file)
            os.replace(f"{path}.part", path)

    def leave(self) -> None:
        """Take a temporary folder away."""
        if not self.is_shared:
            shutil.rmtree(self.path, ignore_errors=True)


def open_folder(shared: str | None, command: Sequence[str]) -> ReportFolder:
    """The folder for a run of this command, in the folder `shared` where that is given.

    Raises:
        UsageError: it cannot be made.
    """
    node, started = os.uname().nodename, time.time()
    if shared is None:
        path = tempfile.mkdtemp(prefix="gradfix-")
    else:
        path = os.path.join(os.path.abspath(shared), run_id(command))
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--report-dir {shared}: {(error.strerror or str(error)).lower()}") from error
    folder = ReportFolder(
        path=path, is_shared=shared is not None, launch=f"{node}.{os.getpid()}.{started:.3f}", node=node, started=started,
        command=tuple(command),
    )  # fmt: skip
    folder.write()
    return folder


def run_id(command: Sequence[str]) -> str:
    """A name that is the same for every `gradfix run` of one job, and another for the next job.

    Set by GRADFIX_RUN_ID, else the scheduler's job and step where it has started this process, else torchrun's rendezvous id
    where the command has several nodes; without any of these this process is alone, and gets a name of its own.
    """
    name = os.environ.get(RUN_ID) or _of_scheduler() or _of_rendezvous(command)
    name = name or f"{time.strftime('%Y%m%d-%H%M%S')}-{os.uname().nodename}-{os.getpid()}"
    return re.sub(r"[^\w.-]", "_", name)[:120]


def _of_scheduler() -> str | None:
    """The job and its step, where `srun`, `mpirun` or PBS started this very process on each node."""
    job, step = os.environ.get("SLURM_JOB_ID"), os.environ.get("SLURM_STEP_ID", "")
    if job and step.isdigit() and int(step) < 0xFFFFFFF0:  # above are the batch script and other steps of no number
        return f"slurm-{job}.{step}.{os.environ.get('SLURM_RESTART_COUNT', '0')}"
    space = os.environ.get("PMIX_NAMESPACE")
    return f"mpi-{space}" if space else None


def _task() -> str:
    """Which of the scheduler's tasks this process is: a node may run a `gradfix run` for each of its ranks."""
    names = [*(rank for rank, _, _ in LAUNCHERS if rank != "RANK"), "PMIX_RANK"]
    return next((os.environ[name] for name in names if name in os.environ), "")


def _of_rendezvous(command: Sequence[str]) -> str | None:
    words = [part for word in command for part in word.split("=", 1)]
    for option in ("--rdzv-id", "--rdzv_id"):
        if option in words[:-1]:
            return f"torchrun-{words[words.index(option) + 1]}"
    return None


def find_run(folder: str) -> str | None:
    """The run that a folder of reports is, or the last one that it holds; None where it is no such folder."""
    if read_launches(folder):
        return folder
    inside = [entry.path for entry in os.scandir(folder) if entry.is_dir()] if os.path.isdir(folder) else []
    runs = [(launches[-1]["started"], path) for path in inside if (launches := read_launches(path))]
    return max(runs)[1] if runs else None


def check_run(folder: str) -> None:
    """Refuse a run in which no rank has reported.

    Raises:
        UnreadableInput: there is nothing to tell.
    """
    if not any(name.endswith((ALIVE, ".json")) and not name.startswith("run.") for name in os.listdir(folder)):
        raise UnreadableInput(f"{folder}: no process has reported into this folder yet")


def ask_for_stacks(folder: str, deadline: float) -> None:
    """Wait until each process has told where it stands; a process of this node that does not is asked from C, by a signal."""
    until = time.monotonic() + _STACKS_IN
    while (silent := list(_silent(folder, deadline))) and time.monotonic() < until:
        # A process that never made a process group has no thread that tells by itself.
        if all(one["place"]["rank"] is None for one in silent):
            break
        time.sleep(0.1)
    asked = False
    for one in silent:
        if one.get("signal") and one["place"]["node"] == os.uname().nodename and began(one["pid"]) == one["began"]:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(one["pid"], one["signal"])
                asked = True
    if asked:
        time.sleep(0.5)


def _silent(folder: str, deadline: float) -> Iterator[dict[str, Any]]:
    """The living processes that have not told where they stand since the deadline."""
    for name in sorted(os.listdir(folder)):
        if name.endswith(ALIVE):
            with suppress(OSError, ValueError), open(os.path.join(folder, name), encoding="utf-8") as file:
                one = json.load(file)
                report = os.path.join(folder, f"{name.removesuffix(ALIVE)}.json")
                is_here = one["place"]["node"] == os.uname().nodename
                if is_here and began(one["pid"]) != one["began"]:
                    continue
                if not os.path.exists(report) or os.stat(report).st_mtime < deadline - 1.0:
                    yield one


def settle(folder: ReportFolder) -> None:
    """Give ranks that another `gradfix run` has started a moment to report what this one's have seen already."""
    if not folder.is_shared:
        return
    until = time.monotonic() + _SETTLE
    alive = read_alive(folder.path)  # once: there may be thousands of ranks, and the file system is a network away
    awaited = {name.removesuffix(ALIVE) for name, one in alive if one.get("launch") != folder.launch}
    while awaited and time.monotonic() < until:
        awaited -= {os.path.splitext(one)[0] for one in os.listdir(folder.path) if one.endswith((".json", STACK))}
        time.sleep(0.1 if awaited else 0.0)


def is_elsewhere(folder: ReportFolder) -> bool:
    """Whether the job's rank 0 was started by another `gradfix run`."""
    first = [one.get("launch") for one in read_started(folder.path) if one["place"]["rank"] == 0]
    return bool(first) and folder.launch not in first
