"""The facade that every face of gradfix calls: explain a log or an exception, plan its fixes, apply them, take them back."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, BinaryIO

from explainer.catalog.bundle import load_catalog
from explainer.catalog.catalog import Catalog
from explainer.ingest.source import Readable
from explainer.match.cascade import with_ranks, with_story
from explainer.match.fingerprint import fingerprint
from explainer.match.nearest import describe_unknown
from explainer.match.rank import rank_causes
from explainer.model.environment import Environment
from explainer.model.incident import SEEN, Frame, Incident, LogLine, MetricRow
from explainer.model.report import Report

if TYPE_CHECKING:
    from explainer.model.finding import Culprit, Fix
    from explainer.model.journal import Record, Refused
    from explainer.source.program import Program

MAX_SCRIPTS = 12
_LIBRARIES = ("torch", "transformers", "lightning", "accelerate", "trl", "peft")


class Explanation(Report):
    """A report that shows itself: as a card by `print`, in a terminal (rich) and in a notebook (HTML)."""

    __slots__ = ()

    def __str__(self) -> str:
        from explainer.render.terminal import Layout, render_terminal

        return render_terminal(self, Layout()).rstrip("\n")

    def _repr_html_(self) -> str:
        from explainer.render.html import render_html

        return render_html(self)

    def __rich__(self) -> object:
        from rich.text import Text

        from explainer.render.terminal import Layout, render_terminal

        return Text.from_ansi(render_terminal(self, Layout(is_coloured=True)))


def explain(
    failure: BaseException | str | os.PathLike[str] | BinaryIO,
    *,
    environment: Environment | None = None,
    knowledge: str | None = None,
    mask: bool = True,
) -> Explanation:
    """Explain a failure: a live exception, the text of a log or traceback, a path to a log or notebook, an open file.

    A `str` is always text; give a path as `pathlib.Path`. Where a log holds several independent failures the last one,
    which ended it, is explained. `knowledge` is a folder of rules of your own; secrets are masked unless `mask` is False.

    Raises:
        UnreadableInput: the file is missing or no text.
        RuleError: the rules in `knowledge` cannot be used.

    Example:
        >>> report = explain("RuntimeError: grad can be implicitly created only for scalar outputs")
        >>> report.findings[0].cause
        'backward/non-scalar-loss'
    """
    catalog = load_catalog(knowledge)
    report = explain_incident(read_incidents(failure)[-1], environment, catalog)
    variables = os.environ if isinstance(failure, BaseException) else None  # it was raised in this process
    report = localise(report, catalog, root=os.getcwd(), mask=mask, variables=variables)
    return Explanation(**{field.name: getattr(report, field.name) for field in fields(report)})


def read_incidents(failure: BaseException | str | os.PathLike[str] | BinaryIO) -> list[Incident]:
    """The incidents of a live exception, a text, a file or a stream; at least one."""
    if isinstance(failure, BaseException):
        from explainer.ingest.exception import read_exception_object

        return [_with_live_objects(read_exception_object(failure), failure)]
    if isinstance(failure, str):
        from explainer.ingest.text import read_text

        return list(read_text(failure))
    from explainer.ingest.source import read_file, read_stream

    if isinstance(failure, os.PathLike):
        return read_file(os.fspath(failure))
    return read_stream(failure, getattr(failure, "name", "stream"))


def _with_live_objects(incident: Incident, error: BaseException) -> Incident:
    """The incident with what the tensors and modules of this process say, where torch is in it."""
    import sys

    if "torch" not in sys.modules:
        return incident
    from explainer.verification.live_report import with_live_objects

    try:
        return with_live_objects(incident, error)
    except Exception:  # noqa: BLE001 - the user's objects may do anything when they are looked at; the text remains
        return incident


def read_log(
    path: str, *, stream: Readable | None, tracebacks_only: bool, on_chunk: Callable[[bytes], None] | None
) -> list[Incident]:
    """The incidents of the log at `path`, or of an open stream that is named so."""
    from explainer.ingest.source import read_file, read_stream

    if stream is None:
        return read_file(path, tracebacks_only=tracebacks_only, on_chunk=on_chunk)
    return read_stream(stream, path, tracebacks_only=tracebacks_only, on_chunk=on_chunk)


def explain_incident(incident: Incident, environment: Environment | None, catalog: Catalog) -> Report:
    """The report of one incident: its findings, or what to do where nothing was recognised."""
    faults: list[str] = []
    incident = with_story(incident, catalog)
    findings = rank_causes(incident, environment, catalog, faults)
    if not findings and (broken := _with_broken_values(incident)) is not None:
        incident, findings = broken, rank_causes(broken, environment, catalog, faults)
    findings = with_ranks(findings, incident.story)
    unknown = None if findings else describe_unknown(incident, catalog)
    return Report(
        incident=incident,
        environment=environment,
        findings=findings,
        unknown=unknown,
        faults=tuple(dict.fromkeys(faults)),
        fingerprint=fingerprint(incident, findings[0] if findings else None),
    )


def _with_broken_values(incident: Incident) -> Incident | None:
    """An incident whose exception says nothing of NaN, `assert dt > 0`, where the live program held some: with a row of its log."""
    told = [one for name in ("live_bad_data", "live_bad_parameters") if (one := incident.fact(name)) is not None]
    if not told:
        return None
    lines = tuple(LogLine(text=f"{SEEN}{one.value} are not finite") for one in told)
    row = MetricRow(values=(("grad_norm", math.nan),))
    return replace(incident, log=(*incident.log, *lines), metrics=(*incident.metrics, row))


def localise(
    report: Report, catalog: Catalog, *, root: str, mask: bool, variables: Mapping[str, str] | None = None
) -> Report:
    """The report with what the user's program under `root` adds: guilty lines, edits; paths relative to it, secrets masked.

    `variables` are those of the environment that it ran in, where known.
    """
    return present(plan_report(report, catalog, root, variables=variables), root=root, mask=mask)


def present(report: Report, *, root: str, mask: bool, is_bound: bool = False) -> Report:
    """A planned report as it is shown: lines read from the files, paths relative to `root`, secrets masked.

    With `is_bound` no file outside of `root`, a real path, is opened for a line.
    """
    from explainer.render.rewrite import rewrite_paths, rewrite_sentences

    prefix = root.rstrip(os.sep) + os.sep
    report = _with_source(report, root, is_bound=is_bound)
    report = rewrite_paths(report, lambda path: path.removeprefix(prefix))
    report = rewrite_sentences(report, lambda text: text.replace(prefix, ""))
    if mask:
        from explainer.render.mask import mask_secrets

        report = mask_secrets(report)
    return report


def plan_report(
    report: Report, catalog: Catalog, root: str, also: Iterable[str] = (), variables: Mapping[str, str] | None = None
) -> Report:
    """The report with the lines and edits that the codemods of its causes find in the program under `root`.

    The program is what the frames and the tracer name, and the files `also`, such as the script of a command; where nothing
    is named, the few scripts of the folder that train. `variables` are those of the environment that it ran in, where known.
    """
    root = os.path.realpath(root)
    with _without_collector():
        return _planned(report, catalog, root, also, variables or {})


@contextmanager
def _without_collector() -> Iterator[None]:
    """No garbage collection: syntax trees are many small objects, which it would go through again and again for nothing."""
    import gc

    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _planned(report: Report, catalog: Catalog, root: str, also: Iterable[str], variables: Mapping[str, str]) -> Report:
    incident, notebook = report.incident, None
    if incident.source and incident.source.endswith(".ipynb"):
        from explainer.source.notebook import in_notebook

        incident, notebook = in_notebook(incident, root)
    frames = _user_frames(incident)
    also = list(also)
    traced = _traced_here(incident, root)
    is_guess = not (frames or traced or _has_script(also))
    named = _named_here(frames, root) if frames else _scripts(root) if is_guess else []
    named = list(dict.fromkeys([*named, *traced, *also]))
    if not report.findings or not named:
        return report
    from explainer.catalog.interface import came, gone
    from explainer.fix.codemod import Context
    from explainer.fix.plan import plan_fixes
    from explainer.match.rerank import rerank
    from explainer.match.surroundings import Surroundings
    from explainer.source.program import read_program

    surroundings = Surroundings(report.incident, report.environment)
    context = Context(
        program=read_program(root, named),
        incident=incident,
        ability=surroundings.can,
        version=surroundings.release,
        changes=lambda of, name: [*gone(catalog, of, name), *came(catalog, of, name)],
        variables=variables,
        is_guess=is_guess,
    )
    faults = list(report.faults)
    findings = tuple(
        plan_fixes(one, catalog.cause(one.cause), replace(context, fields=dict(one.fields)), faults)
        for one in report.findings
    )
    if notebook is not None:
        findings = tuple(notebook.name_cells(one) for one in findings)
    return replace(report, findings=rerank(findings), faults=tuple(dict.fromkeys(faults)))


def plan(incident: Incident, environment: Environment | None, catalog: Catalog, *, root: str) -> Report:
    """The report of an incident with the edits that `apply` takes; what a killed gradfix left is settled first."""
    from explainer.transaction import settle_journal

    settle_journal(root)
    return plan_report(explain_incident(incident, environment, catalog), catalog, root)


def apply(fix: Fix, *, cause: str, root: str, command: str = "") -> Record | Refused:
    """Write the files of a planned fix: the record of the journal by which `undo` takes them back, or why not."""
    from explainer.transaction import apply_fix

    return apply_fix(fix, cause=cause, root=root, command=command)


def edit_fix(fix: Fix, texts: Mapping[str, str], *, root: str) -> Fix | Refused:
    """A planned fix with the files as a person has rewritten them: `texts` as of `texts_of`; why not, where one does not parse."""
    from explainer.fix.edited import edit_fix as edited

    return edited(fix, texts, root)


def lines_of(fix: Fix) -> dict[str, int]:
    """The first line that a fix changes in each of the texts of `texts_of`, counted from 1."""
    from explainer.fix.edited import lines_of as lines

    return lines(fix)


def texts_of(fix: Fix) -> dict[str, str] | Refused:
    """The files of a fix by their paths, and cells of notebooks, as they are once it is applied, to be edited; why they cannot be."""
    from explainer.fix.edited import texts_of as texts

    return texts(fix)


def diff_of(record: Record) -> str:
    """What an applied patch changed, as a unified diff."""
    from explainer.fix.splice import unified_diff

    return "".join(
        unified_diff(
            one.before.decode("utf-8", "replace"), one.after.decode("utf-8", "replace"), os.path.relpath(one.file, record.root)
        )
        for one in record.files
    )  # fmt: skip


def undo(record: Record) -> Record | Refused:
    """Take an applied patch back, byte for byte; why not, where a file has changed since."""
    from explainer.transaction import undo_record

    return undo_record(record)


def history(root: str | None = None) -> list[Record]:
    """The patches of the project that holds the folder `root`, or of all projects, oldest first."""
    from explainer.transaction import list_records, settle_journal

    if root is not None:
        settle_journal(root)
    return list_records(root)


def find_patch(name: str) -> Record:
    """The patch whose id begins with `name`, in any project.

    Raises:
        UsageError: there is none, or more than one.
    """
    from explainer.transaction import find_record

    return find_record(name)


def program_of(root: str, named: Iterable[str]) -> Program:
    """The program of a run that named no file in a traceback: its scripts, and the files that were seen live."""
    from explainer.source.program import read_program

    return read_program(root, [*named, *_scripts(root)])


def _has_script(paths: Iterable[str]) -> bool:
    """Whether files that a command names are more than configuration."""
    from explainer.source.setting.setting import kind_of

    return any(kind_of(one) is None for one in paths)


def _scripts(root: str) -> list[str]:
    """The scripts at the root that train, where they are few: the program of a failure that names no file."""
    from explainer.source.file import read_source
    from explainer.source.text import Unreadable

    entries = os.scandir(root) if os.path.isdir(root) else ()
    paths = sorted(entry.path for entry in entries if entry.name.endswith(".py") and entry.is_file())
    found = []
    for path in paths if len(paths) <= MAX_SCRIPTS else ():
        try:
            if any(name in read_source(path).text for name in _LIBRARIES):
                found.append(path)
        except Unreadable:
            continue
    return found


def _named_here(frames: list[Frame], root: str) -> list[str]:
    """The files that the frames name and that lie under `root`, nearest to the failure first.

    A file that has only its name in common with a frame's path counts where it holds a line that a frame shows: the
    program may lie elsewhere here than where it ran, and another project's `train.py` is not it.
    """
    from explainer.source.excerpt import read_line
    from explainer.source.place import place_of

    held: dict[str, list[bool]] = {}
    for frame in frames:
        path = place_of(frame.file, root)
        if path is not None:
            shown = (frame.code or "").split("\n")[0].strip()
            is_it = os.path.realpath(os.path.join(root, frame.file)) == path or not shown
            held.setdefault(frame.file, []).append(is_it or read_line(path, frame.line or 0, root) == shown)
    return [name for name, answers in held.items() if any(answers)]


def _traced_here(incident: Incident, root: str) -> list[str]:
    """The files under `root` that the tracer names."""
    from explainer.source.place import place_of

    return [path for one in incident.traced if (path := place_of(one.file, root)) is not None]


def _user_frames(incident: Incident) -> list[Frame]:
    """The user's own frames, those nearest to the failure first."""
    frames = [*incident.forward_frames, *(frame for record in incident.exceptions for frame in record.frames)]
    return [frame for frame in reversed(frames) if frame.library is None]


def _with_source(report: Report, root: str, *, is_bound: bool) -> Report:
    """The report with the source line of each culprit that the traceback names without its code."""
    from explainer.source.excerpt import read_line
    from explainer.source.place import place_of

    def line_of(culprit: Culprit) -> str | None:
        file = place_of(culprit.file, root) if is_bound else culprit.file
        return read_line(file, culprit.line or 0, root) if file else None

    if all(culprit.code for finding in report.findings for culprit in finding.culprits):
        return report
    findings = tuple(
        replace(
            finding,
            culprits=tuple(
                culprit if culprit.code else replace(culprit, code=line_of(culprit)) for culprit in finding.culprits
            ),
        )
        for finding in report.findings
    )
    return replace(report, findings=findings)
