"""Logs of 8-rank jobs, made of printed samples: one rank fails by itself, others lose it, all lines shuffled into one another.

Each rank's lines keep their order, as a terminal or a launcher's pipe keeps them; which rank prints when is random.
"""

from __future__ import annotations

import functools
import random
import tomllib
from typing import NamedTuple

from tests.conftest import ROOT

RANKS = 8
SITE = "/home/user/.venv/lib/python3.11/site-packages/torch"
WAITING = {
    "all_reduce": (
        '  File "/home/user/project/train.py", line 61, in train\n    dist.all_reduce(total)\n'
        f'  File "{SITE}/distributed/c10d_logger.py", line 83, in wrapper\n    return func(*args, **kwargs)\n'
        f'  File "{SITE}/distributed/distributed_c10d.py", line 3252, in all_reduce\n    work.wait()\n'
    ),
    "backward": (
        '  File "/home/user/project/train.py", line 58, in train\n    loss.backward()\n'
        f'  File "{SITE}/_tensor.py", line 623, in backward\n    torch.autograd.backward(\n'
        f'  File "{SITE}/autograd/__init__.py", line 395, in backward\n    _engine_run_backward(\n'
    ),
}
FORMS = ("[rank{}]: ", "[default{}]:", "{}: ", "[1,{}]<stderr>:", "[rank{}]:")
HANDLED = """
During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/home/user/project/train.py", line 70, in <module>
    train()
  File "/home/user/project/train.py", line 66, in train
    raise TrainingFailed("could not write the last state") from None
train.TrainingFailed: could not write the last state"""
LAUNCHER = """E1122 13:04:49.520000 10774 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: {rank} (pid: 4711) of binary: /usr/bin/python
Traceback (most recent call last):
  File "{site}/distributed/launcher/api.py", line 383, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-22_13:04:49
  host      : localhost
  rank      : {rank} (local_rank: {rank})
  exitcode  : 1 (pid: 4711)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================"""


class Log(NamedTuple):
    """A log with what it should be read as: the rank that failed first, its cause, and the ranks that failed after it.

    `alone` is what the first rank printed.
    """

    text: str
    alone: str
    first: int
    cause: str
    victims: frozenset[int]


@functools.cache
def samples() -> list[tuple[str, str]]:
    """Causes with the traceback that their reproducers print, of families that fail on one rank by itself."""
    found = []
    for path in sorted(ROOT.glob("knowledge/*/*/*/printed/2.13.0.txt")):
        family, cause = path.parts[-5:-3]
        text = "\n".join(line for line in path.read_text().splitlines() if not line.startswith("# origin="))
        if (
            family != "distributed"
            and text.count("Traceback (most recent") == 1
            and len(text) < 6000
            and "[rank" not in text
        ):
            found.append((f"{family}/{cause}", text))
    return found


@functools.cache
def echoes() -> list[str]:
    """What ranks print that lost another one or waited for it, from the samples of the signatures."""
    said = []
    for name in ("peer-connection-lost", "collective-timed-out"):
        forms = tomllib.loads((ROOT / f"knowledge/signatures/{name}.toml").read_text())["form"]
        for form in forms:
            if form.get("stands", "exception") == "exception":
                said += [one["text"] for one in form["sample"] if one.get("torch", "2.13") >= "2"]
    return said


def make_log(seed: int) -> Log:
    """One log, the same for the same seed."""
    chance = random.Random(seed)
    cause, text = chance.choice(samples())
    first = chance.randrange(RANKS)
    victims = sorted(chance.sample([one for one in range(RANKS) if one != first], chance.randint(1, RANKS - 1)))
    form = chance.choice(FORMS)
    streams = {first: text.splitlines()}
    for rank in victims:
        what = chance.choice(echoes()).replace("\n", " ")
        stack = chance.choice(sorted(WAITING.values()))
        kind = "torch.distributed.DistBackendError" if "NCCL" in what else "RuntimeError"
        if chance.random() < 0.1:
            what, kind = "", "KeyboardInterrupt"
        streams[rank] = f"Traceback (most recent call last):\n{stack}{kind}{': ' * bool(what)}{what}".splitlines()
        if chance.random() < 0.2:
            streams[rank] += HANDLED.splitlines()
    lines = []
    # A rank in front may be a victim: what it writes reaches the terminal before what the first one wrote.
    while streams:
        rank = chance.choice(sorted(streams))
        for _ in range(chance.randint(1, 4)):
            if streams.get(rank):
                lines.append(form.format(rank) + streams[rank].pop(0))
        if not streams[rank]:
            del streams[rank]
    if chance.random() < 0.5:
        # The launcher sees a process end, which need not be the one that raised first.
        seen = first if chance.random() < 0.6 else chance.choice([first, *victims])
        if form.startswith("[1,"):
            lines.append(
                "mpirun detected that one or more processes exited with non-zero status, thus causing the job to be terminated."
            )
        elif form.startswith("{"):
            lines.append(f"srun: error: node01: task {seen}: Exited with exit code 1")
        else:
            lines += LAUNCHER.format(rank=seen, site=SITE).splitlines()
    return Log("\n".join(lines) + "\n", text + "\n", first, cause, frozenset(victims))
