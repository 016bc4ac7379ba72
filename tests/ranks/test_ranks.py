"""Which rank failed first, from reports: clocks that disagree, echoes, restarts, what one rank has and the others have not."""

from __future__ import annotations

import json
import pathlib

import pytest

from explainer.model.incident import Incident, LogLine
from explainer.model.rank import name_ranks
from explainer.ranks import tell_ranks
from explainer.verification.rank_file import read_fault, read_ranks
from explainer.verification.report_folder import RUN_ID, find_run, open_folder, run_id

LOST = "Connection closed by peer [10.0.0.2]:945."
START = 1_000_000.0


def report(
    folder: pathlib.Path,
    rank: int,
    *,
    message: str | None = None,
    at: float = 5.0,
    node: str = "a",
    skew: float = 0.0,
    attempt: int = 0,
    latency: float = 0.001,
    launch: str | None = None,
    world: int = 2,
    **more: object,
) -> None:
    """What a rank leaves behind that fails `at` seconds after its start; its node's wall clock is `skew` seconds ahead."""
    boot, wall, monotonic, pid = f"boot-{node}", START + skew, 50.0 * (1 + ord(node[0])), 100 * attempt + rank + 1
    place = {"rank": rank, "local_rank": rank, "world": world, "source": "RANK", "attempt": attempt, "node": node, "boot": boot, "helper": False,
             "wall": wall, "monotonic": monotonic}  # fmt: skip
    clock = {"before": wall, "stamped": START + latency / 2 + 0.0001, "after": wall + latency}
    name = folder / f"rank-{rank}.{attempt}.{node}.{pid}"
    name.with_name(f"{name.name}.alive").write_text(
        json.dumps({"pid": pid, "began": "1", "place": place, "clock": clock, "launch": launch})
    )
    if message == "vanished":
        return
    failure = {"type": "RuntimeError" if "peer" in str(message) else "ValueError", "message": message, "where": "uncaught", "steps": {"0 SGD": 3},
               "text": f"Traceback (most recent call last):\n  File \"train.py\", line 3, in f\n    g()\n{'RuntimeError' if 'peer' in str(message) else 'ValueError'}: {message}\n",
               "monotonic": monotonic + at, "wall": wall + at, "tensors": more.get("tensors", {})}  # fmt: skip
    failure["at"] = "train.py:step"
    told = {"pid": pid, "place": place, "now": {"wall": wall + at, "monotonic": monotonic + at}, "ended": True, "steps": {"0 SGD": 3},
            "failures": [failure] if message else [], "with": more.get("software", {})}  # fmt: skip
    name.with_name(f"{name.name}.json").write_text(json.dumps(told))


def tell(folder: pathlib.Path, catalog):
    """The story of the reports in a folder."""
    told = tell_ranks(read_ranks(str(folder)), catalog)
    return told.story if told is not None else None


@pytest.mark.parametrize(
    ("late_at", "first"), [(START + 100, 1), (START + 1, None)], ids=["before the end", "by the end"]
)
def test_a_failure_and_a_hang(tmp_path: pathlib.Path, catalog, late_at: float, first: int | None) -> None:
    """Where one rank failed and the others waited until the time was up, the failure is told; not one that the ending caused."""
    report(tmp_path, 0)
    report(tmp_path, 1, message="bad batch")
    told = tell_ranks(read_ranks(str(tmp_path)), catalog, late_at=late_at)
    assert told is not None
    assert (told.failure is not None, told.story.first) == (first is not None, first)


def test_no_story_without_a_failure(tmp_path: pathlib.Path, catalog) -> None:
    """Ranks that ended well have none."""
    report(tmp_path, 0)
    report(tmp_path, 1)
    assert tell(tmp_path, catalog) is None


def test_no_story_of_one_rank(tmp_path: pathlib.Path, catalog) -> None:
    """One process of a world of one is no job of ranks."""
    report(tmp_path, 0, message="bad batch", world=1)
    assert tell(tmp_path, catalog) is None


def test_the_echo_came_first(tmp_path: pathlib.Path, catalog) -> None:
    """An echo is a victim's, also where its clock says that it was earlier: a report may be late, a lost peer has no other cause."""
    report(tmp_path, 0, message=LOST, at=5.0)
    report(tmp_path, 1, message="bad batch", at=5.1)
    assert (tell(tmp_path, catalog).first, tell(tmp_path, catalog).is_sure) == (1, True)


@pytest.mark.parametrize("skew", [-3600.0, -1.0, 7.5])
def test_wall_clocks_that_disagree(tmp_path: pathlib.Path, catalog, skew: float) -> None:
    """The shared folder's clock brings both nodes to one time, however far their own are apart."""
    report(tmp_path, 0, message="first", at=5.0, node="a")
    report(tmp_path, 1, message="second", at=5.4, node="b", skew=skew)
    assert (tell(tmp_path, catalog).first, tell(tmp_path, catalog).is_sure) == (0, True)


def test_clocks_that_cannot_tell(tmp_path: pathlib.Path, catalog) -> None:
    """A slow file system bounds the clocks badly: two nodes' failures within that are told as such."""
    report(tmp_path, 0, message="one", at=5.0, node="a", latency=0.8)
    report(tmp_path, 1, message="another", at=5.1, node="b", latency=0.8)
    story = tell(tmp_path, catalog)
    assert not story.is_sure
    assert story.says[1] == "ranks 0, 1 failed by themselves within 0.1 s: their clocks cannot tell which was first"


def test_only_the_last_attempt_counts(tmp_path: pathlib.Path, catalog) -> None:
    """torchrun starts all ranks again after a failure."""
    report(tmp_path, 0, message="of the first attempt")
    report(tmp_path, 0, message=LOST, attempt=1)
    report(tmp_path, 1, message="bad batch", attempt=1)
    assert tell(tmp_path, catalog).first == 1


def test_a_run_that_was_started_again(tmp_path: pathlib.Path, catalog) -> None:
    """Reports of an earlier start under the same name do not count."""
    report(tmp_path, 0, message="old", launch="old", node="a")
    report(tmp_path, 1, message="new", launch="new", node="b")
    for launch, started in (("old", 1.0), ("new", 2.0)):
        told = {"launch": launch, "node": "a", "started": started, "ended": started + 0.5}
        (tmp_path / f"run.a.{launch}.json").write_text(json.dumps(told))
    assert [one.rank for one in read_ranks(str(tmp_path))] == [1]


def test_a_launch_for_each_task_of_a_node(tmp_path: pathlib.Path, catalog) -> None:
    """`srun gradfix run` starts one for each rank: all of them count, those of the job's earlier start do not."""
    for start in (0, 1):
        for task in range(3):
            launch = f"{start}-{task}"
            report(tmp_path, task, message="bad batch" if task == 1 else LOST, launch=launch, world=3)
            started = 100.0 * start + task / 10
            told = {"launch": launch, "node": "a", "task": str(task), "started": started, "ended": started + 9}
            (tmp_path / f"run.a.{launch}.json").write_text(json.dumps(told))
    assert [one.rank for one in read_ranks(str(tmp_path))] == [0, 1, 2]
    assert tell(tmp_path, catalog).first == 1


STOOD = """Thread 0x00007f14b1c146c0 (most recent call first):
  File "/x/threading.py", line 982 in run

Current thread 0x00007f14d16b1b80 (most recent call first):
  File "/job/train.py", line 8 in load
  File "/job/train.py", line 20 in train
"""
WAITED = "[gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 25000ms for recv operation to complete: peer"


@pytest.mark.parametrize(("message", "first"), [(WAITED, 2), (LOST, 0)], ids=["timed out", "lost"])
def test_a_collective_that_timed_out_before_the_run(tmp_path: pathlib.Path, catalog, message: str, first: int) -> None:
    """The rank that the launcher ended elsewhere is the one that the others waited for; where they lost a peer, that says nothing."""
    for rank in range(2):
        report(tmp_path, rank, message=message, at=5.0 + rank, world=3)
    report(tmp_path, 2, message="vanished", world=3)
    (tmp_path / "3@a.stack").write_text(STOOD)
    story = tell(tmp_path, catalog)
    assert story.first == first
    if first == 2:
        assert story.says[0].endswith("until it times out; rank 2 is elsewhere, in train.py:8 (load)")
        assert (story.place.file, story.place.line) == ("/job/train.py", 8)


def test_the_odd_one_out(tmp_path: pathlib.Path, catalog) -> None:
    """A version and a shape that all ranks but one have are evidence; what each has of its own is none."""
    for rank in range(4):
        software = {"torch": "2.12.0" if rank == 2 else "2.13.0"}
        tensors = {"batch": f"[{7 if rank == 2 else 8}, 3] float32 on cpu", "own": f"[{rank}] float32 on cpu"}
        report(tmp_path, rank, message="bad" if rank == 2 else LOST, world=4, software=software, tensors=tensors)
    odd = tell(tmp_path, catalog).odd
    assert odd == (
        "rank 2 runs with torch 2.12.0, the other ranks 2.13.0",
        "rank 2 holds batch [7, 3] float32 on cpu in train.py:step, the other ranks [8, 3] float32 on cpu",
    )


RUNS = {
    "its own": ({}, ["python", "train.py"], None),
    "set": ({RUN_ID: "exp 7"}, ["python"], "exp_7"),
    "a step of Slurm": ({"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "2"}, ["python"], "slurm-4711.2.0"),
    "the batch script of Slurm": ({"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "4294967291"}, ["srun"], None),
    "torchrun of several nodes": ({}, ["torchrun", "--rdzv-id=77", "train.py"], "torchrun-77"),
}


@pytest.mark.parametrize(("variables", "command", "name"), RUNS.values(), ids=RUNS.keys())
def test_the_name_of_a_run(monkeypatch, variables: dict[str, str], command: list[str], name: str | None) -> None:
    """The same on all nodes of a job; another one for each run where nothing says what it belongs to."""
    for one in (RUN_ID, "SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE"):
        monkeypatch.delenv(one, raising=False)
    for one, value in variables.items():
        monkeypatch.setenv(one, value)
    found = run_id(command)
    assert found == name if name is not None else found.startswith("20")


def test_the_last_run_of_a_folder(tmp_path: pathlib.Path, monkeypatch) -> None:
    """A folder of reports tells of its last run; another folder of none."""
    assert find_run(str(tmp_path)) is None
    for name in ("first", "second"):
        monkeypatch.setenv(RUN_ID, name)
        open_folder(str(tmp_path), ["python"])
    assert find_run(str(tmp_path)) == str(tmp_path / "second")


FAULT = """Fatal Python error: Segmentation fault

Thread 0x00007f8a (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 1, in wait

Current thread 0x00007f8b (most recent call first):
  File "/home/user/train.py", line 12 in step
  File "/home/user/train.py", line 30 in <module>
"""


def test_what_faulthandler_writes() -> None:
    """The main thread stands last; its frames come outermost first, with the fatal error's name."""
    standing = read_fault(FAULT)
    assert [(one.line, one.function) for one in standing.frames] == [(30, "<module>"), (12, "step")]
    assert (standing.fault, standing.is_foreign) == ("Segmentation fault", False)
    assert read_fault("") == ((), "", False)


ABORTED = FAULT.replace("Segmentation fault", "Aborted").replace("Current thread", "Thread")
WATCHDOG = "[rank0]:[E] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600021 milliseconds before timing out."  # noqa: E501


@pytest.mark.parametrize(
    ("printed", "first", "says"),
    [(WATCHDOG, 1, "rank 0 waits in"), ("free(): invalid pointer", 0, "rank 0 crashed (Aborted)")],
    ids=["timed out", "crashed"],
)
def test_an_abort_by_a_thread_without_python(
    tmp_path: pathlib.Path, catalog, printed: str, first: int, says: str
) -> None:
    """It is a crash, unless the output says that a collective timed out: then the rank that stood in none was awaited."""
    assert read_fault(ABORTED).is_foreign
    for rank, stack in enumerate((ABORTED, FAULT.partition("\n\n")[2])):
        report(tmp_path, rank, message="vanished")
        (tmp_path / f"{rank + 1}@a.stack").write_text(stack)
    incidents = [Incident(log=(LogLine(text=printed),))]
    told = tell_ranks(read_ranks(str(tmp_path)), catalog, printed=incidents)
    assert told is not None
    assert told.story.first == first
    assert told.story.says[0].startswith(says)


@pytest.mark.parametrize(
    ("ranks", "said"),
    [([2], "rank 2"), ([3, 0, 1], "ranks 0, 1, 3"), ([0, 1, 2, *range(4, 64)], "ranks 0-2, 4-63")],
    ids=["one", "few", "many"],
)
def test_ranks_in_words(ranks: list[int], said: str) -> None:
    """Few by number, many as spans."""
    assert name_ranks(ranks) == said
