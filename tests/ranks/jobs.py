"""Real jobs of four gloo ranks in which one does something of its own; forked, so that torch is imported once."""

from __future__ import annotations

import pathlib
import sys

from explainer.catalog.bundle import load_catalog
from explainer.run import Job, Run, run_program

TRAIN = """
import ctypes, os, sys, threading, time
import torch
import torch.distributed as dist
from datetime import timedelta

def load(seconds):
    time.sleep(seconds)

def abort_from_c(rank):
    # What NCCL's watchdog does to its process: a thread that runs no Python ends it.
    print(f"[rank{rank}]:[E] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, "
          "NumelIn=4, NumelOut=4, Timeout(ms)=2000) ran for 2010 milliseconds before timing out.", file=sys.stderr, flush=True)
    c, thread = ctypes.CDLL(None), ctypes.c_ulong()
    c.pthread_create(ctypes.byref(thread), None, ctypes.cast(c.abort, ctypes.c_void_p), None)

def train(what, odd, timeout):
    rank = dist.get_rank()
    weight = torch.ones(4, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for step in range(6):
        gradient = torch.ones(4)
        if rank != odd and step == 3 and what == "watchdog":
            threading.Timer(4, abort_from_c, (rank,)).start()
        if rank == odd and step == 3:
            if what == "fail":
                (weight * 2).detach().sum().backward()
            if what in ("hang", "watchdog"):
                load(300)
            if what == "shape":
                gradient = torch.ones(3)
            if what == "leave":
                return
            if what == "kill":
                os.kill(os.getpid(), 9)
            if what == "crash":
                os.kill(os.getpid(), 11)
            if what == "other":
                dist.broadcast(gradient, 0)
        dist.all_reduce(gradient)
        weight.grad = torch.ones(4)
        optimizer.step()
"""
FORKED = """
import multiprocessing, sys, tempfile
import train
from train import dist, timedelta, torch

def main(rank, store, what, odd, timeout):
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=4, timeout=timedelta(seconds=timeout))
    train.train(what, odd, timeout)

if __name__ == "__main__":
    what, odd, timeout = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    warm = torch.optim.SGD([torch.ones(1)], lr=0.1)
    store = "file://" + tempfile.mkdtemp() + "/store"
    fork = multiprocessing.get_context("fork")
    ranks = [fork.Process(target=main, args=(rank, store, what, odd, timeout)) for rank in range(4)]
    for one in ranks:
        one.start()
    for one in ranks:
        one.join()
    sys.exit(max(abs(one.exitcode) for one in ranks))
"""
LAUNCHED = """
import sys
import train
from train import dist, timedelta

dist.init_process_group("gloo", timeout=timedelta(seconds=float(sys.argv[3])))
train.train(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
"""


def write_job(folder: pathlib.Path) -> None:
    """The programs of the jobs."""
    (folder / "train.py").write_text(TRAIN)
    (folder / "forked.py").write_text(FORKED)
    (folder / "launched.py").write_text(LAUNCHED)


def run_job(
    folder: pathlib.Path, *command: str, limit: float | None = None, report_dir: str | None = None
) -> tuple[Run, str]:
    """Run a job in a folder as `gradfix run` does; what was found and printed."""
    output: list[bytes] = []
    write_job(folder)
    job = Job(
        command=(sys.executable, *command), root=str(folder), catalog=load_catalog(), limit=limit, report_dir=report_dir
    )
    done = run_program(job, lambda _, data: output.append(data), is_shown=False)
    return done, b"".join(output).decode()
