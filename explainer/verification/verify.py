"""Runs a command for a few optimizer steps under watch, and judges it. The project's files stay as they were."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from explainer.model.verification import INCONCLUSIVE, Verification
from explainer.verification.command import OnOutput, run_command
from explainer.verification.guard import Guard
from explainer.verification.judge import judge
from explainer.verification.live_report import live_environment, read_reports
from explainer.verification.reach import why_unwatched
from explainer.verification.stream import IsStopped, OnStep, waiting
from explainer.verification.waiting import Waiting

STEPS = 3
TIMEOUT = 600.0
MAX_OUTPUT = 4 << 20
_QUIET = {
    "WANDB_MODE": "disabled",
    "WANDB_SILENT": "true",
    "COMET_MODE": "DISABLED",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "HF_MLFLOW_LOG_ARTIFACTS": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}


_EAGER = {"TORCHDYNAMO_DISABLE": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """How long and how strictly to watch: optimizer steps, what they must go past, seconds, whether saves are let through.

    With `trace` each operation is traced too, and compiled code runs eagerly. A twin runs eagerly, without activation
    checkpointing, on copies of saved tensors; `exact` has compiled code draw the random numbers that eager code draws.
    With `caught` also what the program catches by a handler for everything is noted, whoever raised it.
    `first_backward` keeps the gradients that the first backward leaves, which is before the first step. With `run_on` the
    program goes on for that many seconds once it has made its steps, unless it ends before. `place` are variables that choose
    the devices; `is_silent` that the program had ended well: a whole run is past any failure, and may have fewer steps where it
    learns when to end. `is_stopped` is asked several times a second whether to end.
    """

    steps: int = STEPS
    past: tuple[tuple[str, int], ...] = ()
    is_silent: bool = False
    timeout: float = TIMEOUT
    allow_writes: bool = False
    place: tuple[tuple[str, str], ...] = ()
    is_twin: bool = False
    exact: bool = False
    trace: bool = False
    caught: bool = False
    first_backward: bool = False
    run_on: float = 0.0
    is_stopped: IsStopped | None = None


def verify_command(
    command: Sequence[str], root: str, watch: Watch, on_output: OnOutput | None = None, on_step: OnStep | None = None
) -> Verification:
    """Run `command` in `root` until each optimizer has made its steps, and more than it had made when it failed.

    A program that sets no seed gets one, but for a traced one. Trackers are off, `torch.save` and its like go to a scratch
    folder, and whatever else the run adds or changes under `root` is taken back, unless writes are allowed. `on_step` is told
    of each step as it is made.

    Raises:
        CannotStart: there is no such program.
        Stopped: `watch.is_stopped` said so.
    """
    folder = tempfile.mkdtemp(prefix="gradfix-")
    guard = None if watch.allow_writes else Guard(root)
    output = bytearray()

    def keep(stream: int, data: bytes) -> None:
        output.extend(data)
        del output[: max(len(output) - MAX_OUTPUT, 0)]
        if on_output is not None:
            on_output(stream, data)

    options = {
        "folder": folder, "mode": "trace" if watch.trace else "verify", "steps": watch.steps, "past": dict(watch.past),
        "scratch": folder, "guarded": root if guard is not None and guard.why_not is None else "", "quiet": not watch.allow_writes, "seed": not watch.trace, "twin": watch.is_twin, "exact": watch.exact, "first_backward": watch.first_backward, "caught": watch.caught, "run_on": watch.run_on, "told": on_step is not None,
    }  # fmt: skip
    base = {"PYTHONHASHSEED": "0", **os.environ, **dict(watch.place)}
    base.update({} if watch.allow_writes else _QUIET)
    base.update(_EAGER if watch.trace or watch.is_twin else {})
    on_wait, at_end = waiting(folder, on_step, watch.is_stopped)
    try:
        ended = run_command(
            command, environment=live_environment(options, base), folder=root, on_output=keep, timeout=watch.timeout, is_shown=False,
            on_wait=on_wait, is_enough=Waiting(folder),
        )  # fmt: skip
        at_end()
        processes = read_reports(folder)
    finally:
        lost = guard.restore() if guard is not None else ()
        shutil.rmtree(folder, ignore_errors=True)
    verdict, reasons, notes = judge(ended, processes, watch.past, is_silent=watch.is_silent)
    unwatched = None if processes else why_unwatched(command)
    if unwatched is not None and verdict == INCONCLUSIVE:
        reasons = (*reasons, unwatched)
    told = (f"could not be put back: {', '.join(lost)}",) if lost else ()
    if guard is not None and guard.kept is not None:
        told = (*told, f"what files became during the run is kept in {guard.kept}; in the project they are as before")
    if guard is not None and guard.why_not is not None:
        told = (f"what the run changed was not put back: {guard.why_not}; --root names the project",)
    return Verification(
        verdict=verdict, reasons=reasons, notes=(*notes, *told), status=ended.status, seconds=round(ended.seconds, 3),
        processes=processes, output=bytes(output).decode("utf-8", "replace"),
    )  # fmt: skip
