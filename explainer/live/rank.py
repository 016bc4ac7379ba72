"""Which process of a job this is: rank, node and attempt as launchers tell them, and clocks that can be compared.

A process that a rank starts inherits its variables: a mark in the environment tells such helpers (DataLoader workers,
compilers) from the rank itself.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import Any

MARK = "GRADFIX_RANK"
ALIVE = ".alive"
LAUNCHERS = (
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
)
GIVEN = "torch.distributed"


class Place:
    """The place of this process in its job. `source` is the variable that names the rank."""

    def __init__(self) -> None:
        self.node = os.uname().nodename
        self.boot = _read("/proc/sys/kernel/random/boot_id") or self.node
        self.wall, self.monotonic = time.time(), time.monotonic()
        self.look()

    def look(self) -> None:
        """Read the environment, at the start and in a forked child."""
        self.rank: int | None = None
        self.local_rank: int | None = None
        self.world: int | None = None
        self.source = ""
        self.attempt = _number("TORCHELASTIC_RESTART_COUNT") or _number("SLURM_RESTART_COUNT") or 0
        for rank, local, world in LAUNCHERS:
            of = _number(world)
            if _number(rank) is not None and (rank == "RANK" or (of or 0) > 1):
                self.rank, self.local_rank, self.world, self.source = _number(rank), _number(local), of, rank
                break
        self.is_helper = self._is_marked()

    def become(self, rank: int, world: int) -> bool:
        """Take the rank that torch.distributed gives; whether that was not known."""
        is_new = self.rank != rank or self.is_helper
        self.rank, self.world, self.is_helper = rank, world, False
        self.source = GIVEN if is_new else self.source
        return is_new

    def _is_marked(self) -> bool:
        who, _, pid = os.environ.get(MARK, "").rpartition(":")
        is_other = bool(who) and pid != str(os.getpid())
        return is_other and (self.rank is None or who in (f"{self.source}={self.rank}", f"{GIVEN}={self.rank}"))

    def mark(self) -> None:
        """Tell the processes that this rank starts that they are not the rank."""
        if self.rank is not None and not self.is_helper:
            os.environ[MARK] = f"{self.source}={self.rank}:{os.getpid()}"

    @property
    def name(self) -> str:
        """What the files of this process are called, without an ending."""
        node = "".join(one if one.isalnum() or one == "-" else "_" for one in self.node)[:80]
        if self.rank is None or self.is_helper:
            return f"{node}.{os.getpid()}"
        return f"rank-{self.rank}.{self.attempt}.{node}.{os.getpid()}"

    def told(self) -> dict[str, Any]:
        """Who and where this process is, and when it started by its node's clocks."""
        return {
            "rank": self.rank, "local_rank": self.local_rank, "world": self.world, "source": self.source,
            "attempt": self.attempt, "node": self.node, "boot": self.boot, "helper": self.is_helper,
            "wall": self.wall, "monotonic": self.monotonic,
        }  # fmt: skip

    def say_alive(self, folder: str, **more: Any) -> None:
        """Leave a file that says that this process has started, and the time of the folder's own clock.

        The time at which a shared file system says the file was written is one clock for all nodes: it bounds by how much
        the node's clock is off, from the times before and after.
        """
        path = os.path.join(folder, f"{self.name}{ALIVE}")
        with suppress(OSError):
            before = time.time()
            with open(f"{path}.part", "w", encoding="utf-8") as file:
                file.write("\n")
            stamped, after = os.stat(f"{path}.part").st_mtime, time.time()
            with open(f"{path}.part", "w", encoding="utf-8") as file:
                born = _read(f"/proc/{os.getpid()}/stat").rpartition(")")[2].split()
                clock = {"before": before, "stamped": stamped, "after": after}
                began = born[19] if len(born) > 19 else ""
                json.dump({"pid": os.getpid(), "began": began, "place": self.told(), "clock": clock, **more}, file)
            os.replace(f"{path}.part", path)


def now() -> dict[str, float]:
    """This moment by the wall clock and by the node's monotonic clock, in seconds."""
    return {"wall": time.time(), "monotonic": time.monotonic()}


def _number(name: str) -> int | None:
    value = os.environ.get(name, "")
    return int(value) if value.isascii() and value.isdigit() else None


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
