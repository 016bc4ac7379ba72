"""`with gradfix.watch():`: a training loop under watch, told of what goes wrong in silence while it trains."""

from __future__ import annotations

import math
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from explainer.errors import SilentFailure, UsageError
from explainer.integrations.sighting import is_first_rank, is_run_by_us, recall_here

if TYPE_CHECKING:
    from explainer.model.report import Report
    from explainer.model.verification import ProcessReport

OnSilent = Literal["warn", "stop"] | Callable[["Report"], object]
PATIENCE = 10  # steps before gradients that are missing or zero count: the first ones often are, on purpose
MAX_METRICS = 50


@dataclass(slots=True)
class Watched:
    """What was seen of a watched training."""

    faults: list[str] = field(default_factory=list)
    """What went wrong without an exception, each once, in the order in which it was seen."""
    reports: list[Report] = field(default_factory=list, repr=False)
    """The explanations of these."""
    summary: str = ""
    """One line for the whole, once it has ended."""


@contextmanager
def watch(*, on_silent: OnSilent = "warn", summary: bool = False) -> Iterator[Watched]:
    """Watch the training inside of the block, whatever drives it: a plain loop, accelerate, a Trainer.

    Gradients are looked at in the first three steps, ever more seldom after that, and when a flag on the device says that
    they are not finite; no step waits for a device because of it. What is then seen to go wrong in silence (nothing trains,
    all gradients are zero or not finite) is explained at once on standard error and once only; with `on_silent="stop"`
    the optimizer's step raises `SilentFailure`, with a function that is called with the report. An exception that nobody
    catches is explained below its traceback, with what the live tensors say. At the end a line sums up what went wrong;
    with `summary=True` also that nothing did.

    A block inside of another one takes over from it.

    Raises:
        ImportError: torch is not installed.
        UsageError: `on_silent` is something else.

    Example:
        >>> import gradfix
        >>> with gradfix.watch(on_silent="stop"):
        ...     train()
    """
    watcher = Watcher(on_silent, is_summed_up=summary)
    watcher.open()
    try:
        yield watcher.seen
    except BaseException as error:
        watcher.fail(error)
        raise
    else:
        watcher.close()


class Watcher:
    """Holds the hooks of one watched training, from `open` to `close` or `fail`."""

    _current: Watcher | None = None

    def __init__(self, on_silent: OnSilent, *, is_summed_up: bool) -> None:
        if on_silent not in ("warn", "stop") and not callable(on_silent):
            raise UsageError(f"on_silent={on_silent!r}: it is 'warn', 'stop' or a function that takes a report")
        self.seen = Watched()
        self._on_silent = on_silent
        self._is_summed_up = is_summed_up
        self._metrics: deque[tuple[tuple[str, float], ...]] = deque(maxlen=MAX_METRICS)
        self._hooks = ExitStack()
        self._recorder: Any = None
        self._is_hooked = False

    def open(self) -> None:
        """Put the hooks in; those of a training that never came to its end are taken off."""
        from explainer.integrations import excepthook
        from explainer.live.follow import follow
        from explainer.live.raised import watch as watch_backward
        from explainer.live.record import Recorder

        if Watcher._current is not None:
            Watcher._current.drop()
        self.seen = Watched()
        self._recorder = Recorder({"folder": "", "mode": "run"})
        self._hooks = ExitStack()
        self._hooks.enter_context(watch_backward(self._recorder))
        self._hooks.enter_context(follow(self._recorder, self._on_look))
        Watcher._current = self
        self._is_hooked = not is_run_by_us() and not excepthook.is_installed()
        if self._is_hooked:
            excepthook.install()

    @property
    def is_open(self) -> bool:
        """Whether the hooks are in."""
        return Watcher._current is self

    def note_metrics(self, values: Mapping[str, Any]) -> None:
        """Keep a row of what the program logs, for an explanation to read."""
        row = tuple((name, float(one)) for name, one in values.items() if isinstance(one, (int, float)))
        if row:
            self._metrics.append(row)

    def close(self) -> None:
        """The last look, the summary, and the hooks out."""
        if not self.is_open:
            return
        try:
            self._recorder.look_at_the_end()
            self._judge(is_over=True)
        finally:
            self.drop()

    def fail(self, error: BaseException) -> None:
        """Note what the live objects say of an exception that ends the training; it is explained where it is printed."""
        if not self.is_open:
            return
        if isinstance(error, Exception) and not isinstance(error, SilentFailure) and not is_run_by_us():
            self._recorder.note(error, "raised")
        self._sum_up(self._process())
        self.drop(is_failed=True)

    def drop(self, *, is_failed: bool = False) -> None:
        """Take the hooks out; after a failure uncaught exceptions are still explained."""
        if Watcher._current is self:
            Watcher._current = None
        self._hooks.close()
        self._recorder = None
        if self._is_hooked and not is_failed:
            from explainer.integrations.excepthook import uninstall

            uninstall()

    def _process(self, *, is_over: bool = True) -> ProcessReport:
        """What was recorded so far; until it is over, as of a run that was stopped there."""
        from explainer.verification.live_report import report_of

        raw = {"pid": os.getpid(), "rank": os.environ.get("RANK"), **self._recorder.parts, "stopped": not is_over}
        return report_of(raw)

    def _on_look(self, step: int) -> None:
        """After a look: non-finite gradients count at once, missing ones once it is no mere beginning."""
        rows = self._recorder.parts["rows"]
        if step >= PATIENCE or any(row["norm"] is None for row in rows[-1:]):
            self._judge(is_over=False)

    def _judge(self, *, is_over: bool) -> None:
        from explainer.run import left_out
        from explainer.verification.judge import silent_faults
        from explainer.verification.unowned import said_of

        process = self._process(is_over=is_over)
        faults = [one for one in silent_faults([process]) if one not in self.seen.faults]
        unowned = left_out([process], os.getcwd()) if is_over and not faults and not self.seen.faults else ()
        faults = faults or [said_of(one) for one in unowned]
        is_told = is_over and bool(self.seen.reports)  # what follows from it by the end is for the summary
        self.seen.faults += faults
        if faults and not is_told:
            report = recall_here(self._explain(faults, unowned), way="watch")
            self.seen.reports.append(report)
            self._tell(faults[0], report, is_over=is_over)
        if is_over:
            self._sum_up(process)

    def _explain(self, faults: list[str], unowned: Any) -> Report:
        from explainer.catalog.bundle import load_catalog
        from explainer.model.incident import Incident, MetricRow
        from explainer.run import with_silent
        from explainer.verification.unowned import with_unowned
        from explainer.workflow import explain_incident, localise

        incident = Incident(metrics=tuple(MetricRow(values=row) for row in self._metrics))
        incident = with_unowned(incident, unowned) if unowned else with_silent([incident], faults)[-1]
        catalog = load_catalog(None)
        return localise(
            explain_incident(incident, None, catalog), catalog, root=os.getcwd(), mask=True, variables=os.environ
        )

    def _tell(self, fault: str, report: Report, *, is_over: bool) -> None:
        """Warn, stop, or call, as was asked for; a training that is over cannot be stopped."""
        if callable(self._on_silent):
            self._on_silent(report)
            return
        if self._on_silent == "stop" and not is_over:
            raise SilentFailure(_headline(fault, report), report)
        from explainer.integrations.excepthook import print_card

        print(f"\ngradfix: {fault}", file=sys.stderr, flush=True)
        if report.findings:
            print_card(report, sys.stderr)

    def _sum_up(self, process: ProcessReport) -> None:
        self.seen.summary = sum_up(process, self.seen.faults)
        if is_first_rank() and (self._is_summed_up or self.seen.faults):
            print(f"gradfix: {self.seen.summary}", file=sys.stderr, flush=True)


class Hooks:
    """What the callbacks of all trainers share: a watcher that a copy of the callback, as a trainer pickles it, has anew."""

    def __init__(self, *, on_silent: OnSilent = "warn", summary: bool = False) -> None:
        self._arguments: tuple[OnSilent, bool] = (on_silent, summary)
        self._watcher = Watcher(on_silent, is_summed_up=summary)

    @property
    def seen(self) -> Watched:
        """What was seen of the last training."""
        return self._watcher.seen

    def __getstate__(self) -> dict[str, Any]:
        """Hooks belong to a process; a copy begins without."""
        return {"_arguments": self._arguments}

    def __setstate__(self, state: dict[str, Any]) -> None:
        on_silent, is_summed_up = state["_arguments"]
        self._arguments = state["_arguments"]
        self._watcher = Watcher(on_silent, is_summed_up=is_summed_up)


def sum_up(process: ProcessReport, faults: list[str]) -> str:
    """One line: the steps of each optimizer, what trained, the gradient norm, and what went wrong in silence."""
    from explainer.verification.judge import plain_name

    told = []
    for optimizer, steps in process.steps:
        norms = [one.norm for one in process.rows if one.optimizer == optimizer and one.norm is not None]
        owned = [one for one in process.parameters if one.optimizer == optimizer and one.trains]
        told.append(
            f"{steps} step{'s' * (steps != 1)} of {plain_name(optimizer)}, {sum(1 for one in owned if one.moved)} of"
            f" {len(owned)} parameters trained" + (f", gradient norm {_span(norms)}" if norms else "")
        )
    seen = "; ".join(told) or "no optimizer step was seen"
    return f"{seen}; " + (f"in silence: {'; '.join(faults)}" if faults else "nothing went wrong in silence")


def _span(norms: list[float]) -> str:
    first, last = norms[0], norms[-1]
    return (
        f"{first:.3g}" if len(norms) == 1 or math.isclose(first, last) else f"{first:.3g} at first, {last:.3g} at last"
    )


def _headline(fault: str, report: Report) -> str:
    cause = f" ({report.findings[0].cause}: {report.findings[0].title})" if report.findings else ""
    return f"training is in vain: {fault}{cause}"
