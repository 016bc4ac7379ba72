"""`gradfix explain`: reads each input, explains each incident, prints in the format asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

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

    catalog = load_catalog(options.knowledge)
    environments = Environments(options)
    printer = Printer(options)
    is_any_explained, unreadable, is_any_read = False, [], False
    for path in list_inputs(options.files):
        try:
            incidents = read_input(path, options)
        except UnreadableInput as error:
            fail(str(error), UNUSABLE, is_json=False)
            unreadable.append(str(error))
            continue
        is_any_read = True
        reports = [_explain(incident, environments, options, catalog) for incident in incidents]
        is_any_explained |= any(report.findings for report in reports)
        printer.add(path, reports)
    printer.close()
    if unreadable:
        if options.format == "json" and not is_any_read:  # else every line is a report
            print(error_object("; ".join(unreadable), UNUSABLE))
        return UNUSABLE
    return EXPLAINED if is_any_explained else UNRECOGNISED


def list_inputs(files: tuple[str, ...]) -> Iterator[str]:
    """The logs to read: the files as given, of a folder those that are logs by name; standard input for none.

    Raises:
        GradfixError: a folder without any log.
    """
    for path in files or ("-",):
        if path == "-" or not os.path.isdir(path):
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
