"""`gradfix triage`: progress while it reads, then a table or rows, and where the outputs lie."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from explainer.cli.screen import is_coloured, is_terminal, width
from explainer.errors import GradfixError, UsageError
from explainer.fleet.row import STATUSES, Reading, Row, to_object
from explainer.fleet.source import Source
from explainer.fleet.summary import Summary
from explainer.fleet.triage import SCHEMA, Listener, Outcome, Request, triage
from explainer.render.visible import one_line

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.table import Table

MAX_CAUSES, MAX_CLUSTERS, MAX_UNREAD = 30, 10, 10
DONE, UNREAD, INTERRUPTED = 0, 5, 130


def run_triage(request: Request, name: str) -> int:
    """Triage and print; the exit status: 0, 5 when some inputs could not be read, 130 when interrupted."""
    if "-" in request.words:
        raise UsageError("-: triage reads files and addresses; `gradfix explain` reads standard input")
    listener = Rows() if name == "json" else Bar()
    try:
        outcome = triage(request, listener)
    except BrokenPipeError:
        raise
    except OSError as error:  # of the outputs: a full disk; one of an input is a row
        raise GradfixError(
            f"{error.filename or request.out or 'output'}: {(error.strerror or str(error)).lower()}"
        ) from None
    finally:
        listener.end()
    if name == "text":
        _print_tables(outcome.summary)
    _tell(outcome, request)
    if outcome.is_stopped:
        return INTERRUPTED
    return DONE if outcome.summary.is_all_read else UNREAD


class Bar(Listener):
    """A progress bar on standard error, where that is a terminal."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._failures = self._faulty = 0

    def begin(self, total: int, size: int, done: int) -> None:
        """Show the bar; what was done before counts as done."""
        if not is_terminal(sys.stderr):
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("reading"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[told]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task("reading", total=total, completed=done, told=_megabytes(size))
        self._progress.start()

    def advance(self, source: Source, reading: Reading) -> None:
        """One more."""
        del source
        self._failures += reading.failures
        self._faulty += reading.is_faulty
        if self._progress is not None and self._task is not None:
            told = f"{self._failures} failures" + (f", {self._faulty} not read" if self._faulty else "")
            self._progress.update(self._task, advance=1, told=told)

    def end(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


class Rows(Bar):
    """The bar, and each row as a line of JSON on standard output."""

    def row(self, row: Row) -> None:
        """Print a row."""
        sys.stdout.write(json.dumps({"schema": SCHEMA, **to_object(row)}) + "\n")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB" if size else ""


def _print_tables(summary: Summary) -> None:
    from rich.console import Console

    console = Console(
        width=width(), no_color=not is_coloured("auto"), highlight=False, force_terminal=is_coloured("auto")
    )
    for table in _tables(summary):
        console.print(table)
        console.print()


def _tables(summary: Summary) -> Iterator[Table]:
    if summary.causes:
        table = _table("failures", "share", "cause", "most often at", title="What breaks")
        for cause, line in summary.ranked()[:MAX_CAUSES]:
            place = line.places.most_common(1)
            cells = (str(line.count), f"{line.count / summary.failures:.1%}", cause, place[0][0] if place else "")
            _add(table, cells)
        yield table
    clusters = summary.clusters.ranked()
    if clusters:
        table = _table("failures", "exception", "message", title="What is unknown, by message")
        for cluster in clusters[:MAX_CLUSTERS]:
            _add(table, (str(cluster.count), cluster.exception, one_line(cluster.template, 200)))
        yield table
    if summary.unread:
        table = _table("status", "object", "why", title="Not read, or not to the end")
        for row in summary.unread[:MAX_UNREAD]:
            _add(table, (row.status, row.file, row.detail or ""))
        yield table


def _table(*heads: str, title: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, expand=False
    )
    for head in heads:
        is_number = head in ("failures", "share")
        table.add_column(head, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
    return table


def _add(table: Table, cells: Sequence[str]) -> None:
    """A row of plain text: what a log says is never markup."""
    from rich.text import Text

    table.add_row(*(Text(one_line(cell, 300)) for cell in cells))


def _tell(outcome: Outcome, request: Request) -> None:
    """What it came to, on standard error, so that rows on standard output stay rows."""
    summary = outcome.summary
    counts = ", ".join(f"{summary.statuses[one]} {one}" for one in STATUSES if summary.statuses[one])
    print(
        f"{outcome.done} of {outcome.total} objects, {summary.failures} failures ({counts or 'no rows'})",
        file=sys.stderr,
    )
    more = len(summary.clusters.ranked()) - MAX_CLUSTERS
    if more > 0:
        print(f"{more} more clusters of unknown failures", file=sys.stderr)
    if outcome.is_stopped:
        kept = f"go on with: {_again(request)}" if request.out else "nothing is kept without --out"
        print(f"gradfix: stopped; {kept}", file=sys.stderr)
    elif request.out is not None:
        print(f"{os.path.join(request.out, 'report.html')}  rows.parquet  clusters/", file=sys.stderr)


def _again(request: Request) -> str:
    words = ["gradfix", "triage", *request.words, "--out", str(request.out), "--resume"]
    words += ["--engine", request.engine] if request.engine != "local" else []
    words += ["--knowledge", request.knowledge] if request.knowledge else []
    return shlex.join(words)
