"""The triage of many logs, from the words of a command line to its outputs: engine, parts, summary."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from explainer import __version__
from explainer.disk import hold_signals, replace_file, temporary_of
from explainer.errors import UsageError
from explainer.fleet.cluster import Cluster, to_toml
from explainer.fleet.explained import catalog_of
from explainer.fleet.listing import list_sources
from explainer.fleet.page import render_report
from explainer.fleet.parquet import maybe_parquet, require_pyarrow
from explainer.fleet.part import Parts
from explainer.fleet.pool import Answer, Pool, Settings
from explainer.fleet.row import Reading, Row
from explainer.fleet.source import Source, is_address
from explainer.fleet.summary import Summary

SCHEMA = "gradfix.triage/1"
LOCAL, RAY = "local", "ray"
MAX_CLUSTER_FILES = 500
_PARTS, _RUN, _CLUSTERS = "parts", "run.json", "clusters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to triage and how. `out` is the folder of the outputs; without one nothing stays on disk."""

    words: tuple[str, ...]
    engine: str = LOCAL
    out: str | None = None
    resume: bool = False
    workers: int | None = None
    knowledge: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a triage came to; `done` of `total` objects, fewer where it was stopped."""

    summary: Summary
    done: int
    total: int
    is_stopped: bool


class Listener:
    """Is told how a triage goes on; this one does nothing with it."""

    def begin(self, total: int, size: int, done: int) -> None:
        """There are `total` objects of `size` bytes as stored, `done` of them from an earlier run."""

    def advance(self, source: Source, reading: Reading) -> None:
        """An object has been explained."""

    def row(self, row: Row) -> None:
        """A row, in order, once all objects are done."""

    def end(self) -> None:
        """No more objects are read; the outputs are written."""


def triage(request: Request, listener: Listener) -> Outcome:
    """Explain every object, and write what was asked for. What is done stays done, also where this is cut short.

    Raises:
        UsageError: the arguments exclude each other, or a package is missing.
        RuleError: the user's own rules cannot be used.
        CannotStart: the engine does not work.
        KeyboardInterrupt: it was interrupted; what was done is kept in `out`.
    """
    if request.out is not None:
        if is_address(request.out):
            raise UsageError(f"--out {request.out}: it is a folder of this machine; copy it from there")
        require_pyarrow()
    elif request.resume:
        raise UsageError("--resume goes on with what lies in a folder: name it with --out")
    rules = _rules_digest(request.knowledge)
    sources = list_sources(request.words)
    with _folder(request, rules) as folder:
        parts = Parts(os.path.join(folder, _PARTS))
        todo = [source for source in sources if not parts.is_done(source)]
        listener.begin(len(sources), sum(source.size or 0 for source in todo), len(sources) - len(todo))
        is_stopped = _explain(todo, parts, request, listener)
        listener.end()
        done = len(sources) - len(todo) + is_stopped[1]
        summary = _write(parts.rows(sources), request.out if not is_stopped[0] else None, listener)
        return Outcome(summary=summary, done=done, total=len(sources), is_stopped=is_stopped[0])


def default_workers() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _explain(todo: Sequence[Source], parts: Parts, request: Request, listener: Listener) -> tuple[bool, int]:
    """Read what is to be read; whether it was stopped before its end, and how many were read."""
    count = 0
    try:
        with hold_signals() as is_asked:
            try:
                for index, reading in _answers(todo, request, is_asked):
                    parts.add(todo[index], reading)
                    listener.advance(todo[index], reading)
                    count += 1
            finally:  # also where an engine fails
                parts.flush()
    except KeyboardInterrupt:
        return True, count
    return False, count


def _answers(todo: Sequence[Source], request: Request, is_stopped: Callable[[], bool]) -> Iterator[Answer]:
    settings = Settings(request.knowledge, request.workers or default_workers())
    if request.engine == RAY:
        from explainer.fleet.ray_engine import run_ray

        return run_ray(todo, settings, is_stopped) if todo else iter(())
    return Pool(settings).run(todo, is_stopped)


def _write(rows: Iterator[Row], out: str | None, listener: Listener) -> Summary:
    summary = Summary()
    with maybe_parquet(os.path.join(out, "rows.parquet") if out else None) as file:
        for row in rows:
            summary.add(row)
            listener.row(row)
            if file is not None:
                file.add(row)
    if out is not None:
        names = _write_clusters(os.path.join(out, _CLUSTERS), summary.clusters.ranked())
        page = render_report(summary, names, "Triage of failed runs")
        _replace(os.path.join(out, "report.html"), page)
    return summary


def _write_clusters(folder: str, clusters: Sequence[Cluster]) -> list[str]:
    """A file for each cluster that a rule can be made of; their paths below the output folder, empty for the others."""
    os.makedirs(folder, exist_ok=True)
    names = []
    for number, cluster in enumerate(clusters[:MAX_CLUSTER_FILES], start=1):
        name = f"{number:03d}-{cluster.name}.toml" if cluster.exception and cluster.messages else ""
        if name:
            _replace(os.path.join(folder, name), to_toml(cluster))
        names.append(f"{_CLUSTERS}/{name}" if name else "")
    kept = {os.path.basename(name) for name in names}
    for old in os.listdir(folder):
        if old.endswith(".toml") and old[:3].isdigit() and old not in kept:
            os.unlink(os.path.join(folder, old))
    return names


@contextmanager
def _folder(request: Request, rules: str) -> Iterator[str]:
    """The folder in which the parts lie, for this process alone."""
    from explainer.store.lock import Locked, hold_lock

    with ExitStack() as stack:
        if request.out is None:
            yield stack.enter_context(tempfile.TemporaryDirectory(prefix="gradfix-triage-"))
            return
        try:
            os.makedirs(request.out, exist_ok=True)
            stack.enter_context(hold_lock(request.out, "triage", patience=0.0))
        except Locked:
            raise UsageError(f"{request.out}: another triage is writing there") from None
        except OSError as error:
            raise UsageError(f"{request.out}: {(error.strerror or str(error)).lower()}") from None
        _begin(request.out, rules, is_resumed=request.resume)
        yield request.out


def _begin(out: str, rules: str, *, is_resumed: bool) -> None:
    """Note what a triage was made with; one of other rules is not gone on with, nor one written over unasked."""
    path = os.path.join(out, _RUN)
    try:
        with open(path, encoding="utf-8") as file:
            before = json.load(file)
    except FileNotFoundError:
        note = {"schema": SCHEMA, "gradfix": __version__, "rules": rules}
        _replace(path, json.dumps(note) + "\n")
        return
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    if not is_resumed:
        raise UsageError(f"{out}: holds a triage; --resume goes on with it, or name another folder")
    if before.get("rules") != rules:
        raise UsageError(f"{out}: was made with other rules; name another folder, so that its rows fit together")


def _rules_digest(knowledge: str | None) -> str:
    """What changes when the rules or this version do."""
    return f"{__version__} {catalog_of(knowledge).digest()}"


def _replace(path: str, text: str) -> None:
    replace_file(path, text.encode("utf-8", "replace"), temporary_of(path, "triage"), 0o644)
