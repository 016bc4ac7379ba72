"""`gradfix explain`: reads each input, explains each incident, prints in the format asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

from explainer.catalog.catalog import Catalog
from explainer.cli.failure import error_object, fail
from explainer.cli.options import ExplainOptions
from explainer.errors import GradfixError, UnreadableInput
from explainer.ingest.source import LOG_SUFFIXES
from explainer.model.environment import Environment
from explainer.model.incident import Incident
from explainer.model.report import Report

MAX_FILES = 10_000
EXPLAINED, UNRECOGNISED, UNUSABLE = 0, 1, 2


def run_explain(options: ExplainOptions) -> int:
    """Explain and print; the exit status: 0 something explained, 1 nothing recognised, 2 an input unreadable."""
    if options.cause is not None:
        from explainer.cli.rules import show_rule

        return show_rule(options.cause, options.knowledge, options.color)
    from explainer.catalog.bundle import load_catalog
    from explainer.cli.report import Printer
    from explainer.memory import note, recall_failures

    catalog = load_catalog(options.knowledge)
    environments = Environments(options)
    printer = Printer(options)
    is_any_explained, unreadable, is_any_read = False, [], False
    paths = list(list_inputs(options.files))
    of_ranks = _read_ranks(paths, options, catalog)
    for path in of_ranks or paths:
        try:
            if path != "-" and os.path.isdir(path):
                reports = [_explain_run(path, environments, options, catalog)]
            else:
                incidents = [of_ranks[path]] if path in of_ranks else read_input(path, options)
                reports = [_explain(incident, environments, options, catalog) for incident in incidents]
        except UnreadableInput as error:
            fail(str(error), UNUSABLE, is_json=False)
            unreadable.append(str(error))
            continue
        is_any_read = True
        is_any_explained |= any(report.findings for report in reports)
        reports, sightings = recall_failures(reports, options.root or os.getcwd(), way="explain")
        printer.add(path, reports)
        note(sightings)
    printer.close()
    tell_of_memory()
    if unreadable:
        if options.format == "json" and not is_any_read:  # else every line is a report
            print(error_object("; ".join(unreadable), UNUSABLE))
        return UNUSABLE
    return EXPLAINED if is_any_explained else UNRECOGNISED


def tell_of_memory() -> None:
    """Say in a line of standard error why the memory was left out, where it was."""
    from explainer.memory import why_unusable

    why = why_unusable()
    if why is not None:
        print(f"gradfix: {why}", file=sys.stderr)


def list_inputs(files: tuple[str, ...]) -> Iterator[str]:
    """The logs to read: the files as given, of a folder those that are logs by name; standard input for none.

    Raises:
        GradfixError: a folder without any log.
    """
    for path in files or ("-",):
        if path == "-" or not os.path.isdir(path) or _is_run(path):
            yield path
            continue
        found = [
            os.path.join(folder, name)
            for folder, _, names in sorted(os.walk(path))
            for name in sorted(names)
            if name.endswith(LOG_SUFFIXES)
        ]
        if not found:
            raise GradfixError(f"{path}: no log in this folder ({', '.join('*' + one for one in LOG_SUFFIXES)})")
        yield from found[:MAX_FILES]


def _is_run(folder: str) -> bool:
    """Whether a folder holds the reports of a job's ranks."""
    from explainer.verification.report_folder import find_run

    return find_run(folder) is not None


def _read_ranks(paths: Sequence[str], options: ExplainOptions, catalog: Catalog) -> dict[str, Incident]:
    """The incidents of logs that hold one rank each, the first failure first; {} where the names do not say so."""
    if len(paths) < 2:
        return {}
    from explainer.ingest.rank_log import rank_of_path

    ranks = {path: rank for path in paths if (rank := rank_of_path(path)) is not None}
    if len(ranks) < len(paths) or len(set(ranks.values())) < 2:
        return {}
    from explainer.match.cascade import with_common_story

    try:
        read = {path: read_input(path, options)[-1] for path in paths if os.path.getsize(path)}
    except (OSError, UnreadableInput):
        return {}
    return with_common_story({path: (ranks[path], incident) for path, incident in read.items()}, catalog)


def read_input(path: str, options: ExplainOptions) -> list[Incident]:
    """The incidents of one input; standard input passes through while it is read, as the options say.

    Raises:
        UnreadableInput: it is missing, empty or no text.
    """
    from explainer.workflow import read_log

    if path != "-":
        return read_log(path, stream=None, tracebacks_only=options.tracebacks_only, on_chunk=None)
    from explainer.cli.passthrough import PatientInput, choose_sink
    from explainer.cli.screen import is_terminal

    if is_terminal(sys.stdin):
        print("gradfix: paste the log or traceback, then press Ctrl-D", file=sys.stderr)
    sink = choose_sink(choice=options.passthrough, is_text=options.format == "text")
    with PatientInput(sys.stdin.buffer) as stream:
        return read_log("-", stream=stream, tracebacks_only=options.tracebacks_only, on_chunk=sink)


def _explain(incident: Incident, environments: Environments, options: ExplainOptions, catalog: Catalog) -> Report:
    from explainer.workflow import explain_incident, localise

    report = explain_incident(incident, environments.of(incident), catalog)
    return localise(report, catalog, root=os.path.abspath(options.root or os.getcwd()), mask=options.mask)


def _explain_run(folder: str, environments: Environments, options: ExplainOptions, catalog: Catalog) -> Report:
    """The report of the last run whose ranks have reported into a folder."""
    from explainer.rank_report import Reading, explain_folder
    from explainer.verification.report_folder import find_run
    from explainer.workflow import present

    root = os.path.abspath(options.root or os.getcwd())
    reading = Reading(catalog=catalog, root=root, environment_of=environments.of)
    return present(explain_folder(find_run(folder) or folder, reading), root=root, mask=options.mask)


class Environments:
    """The environment for each incident: a file's, a probe's (once), or none."""

    def __init__(self, options: ExplainOptions) -> None:
        self._options = options
        self._known: Environment | None = None

    def of(self, incident: Incident) -> Environment | None:
        """The environment to explain an incident with."""
        options = self._options
        if options.env is not None:
            if self._known is None:
                from explainer.probe.file import read_environment

                self._known = read_environment(options.env)
            return self._known
        if not options.probe:
            return None
        from explainer.probe.environment import is_from_elsewhere, probe_environment

        if options.python is None and is_from_elsewhere(incident):
            return None
        if self._known is None:
            self._known = probe_environment(options.python, incident)
        return self._known
