"""Prints reports in the format that was asked for, as they come or, where a format needs it, all at the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from explainer.catalog.place import cause_ids
from explainer.cli.options import ExplainOptions
from explainer.cli.screen import is_coloured, width
from explainer.model.report import Report


class Printer:
    """Takes the reports of one input after another."""

    def __init__(self, options: ExplainOptions) -> None:
        self._options = options
        self._kept: list[Report] = []
        self._inputs = 0
        self._is_told = False  # the card of the rank that failed first, among logs of one rank each
        self._unpublished = cause_ids(options.knowledge) if options.knowledge else frozenset()

    def add(self, path: str, reports: Sequence[Report]) -> None:
        """Print the reports of the input at `path`, or keep them for the end."""
        name = self._options.format
        self._inputs += 1
        if name == "text":
            self._write(self._cards(path, reports))
        elif name == "json":
            from explainer.render.json import render_json

            self._write("".join(render_json(report) for report in reports))
        elif name == "markdown":
            from explainer.render.markdown import render_markdown

            self._write("\n".join(render_markdown(report, self._options.top, self._unpublished) for report in reports))
        else:
            self._kept.extend(reports)

    def close(self) -> None:
        """Print what is one document for all inputs."""
        name = self._options.format
        if name == "html":
            from explainer.render.html import render_page

            self._write(render_page(self._kept, self._options.top, self._unpublished))
        elif name == "sarif":
            from explainer import __version__
            from explainer.render.sarif import render_sarif

            self._write(render_sarif(self._kept, __version__, self._unpublished))
        elif name == "github":
            from explainer.render.github import render_github

            self._write(render_github(self._kept, self._unpublished))

    def _cards(self, path: str, reports: Sequence[Report]) -> str:
        """The card of the failure that ended the log; earlier, independent ones in a line each, or whole if verbose."""
        from explainer.render.terminal import Layout, render_terminal
        from explainer.render.visible import one_line

        options = self._options
        story = reports[-1].incident.story
        if story is not None and story.reads == "log" and reports[-1].incident.ranks == (reports[-1].incident.rank,):
            if self._is_told and not options.verbose:
                return f"rank {reports[-1].incident.rank} ({os.path.basename(path)}): {_short(reports[-1])}\n"
            self._is_told = True
        layout = Layout(
            width=width(), is_coloured=is_coloured(options.color), is_verbose=options.verbose, top=options.top
        )
        named = len(options.files) > 1 or self._inputs > 1 or path not in (*options.files, "-")
        head = f"== {one_line(path, layout.width - 3)}\n" if named else ""
        if options.verbose:
            return head + "\n".join(render_terminal(report, layout) for report in reports)
        text = head + render_terminal(reports[-1], layout)
        earlier = [_short(report) for report in reports[:-1]]
        if earlier:
            text += f"\nearlier in this log, each on its own ({len(earlier)}):\n"
            text += "".join(f"  {line}\n" for line in earlier[-8:])
        return text

    @staticmethod
    def _write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def _short(report: Report) -> str:
    from explainer.render.visible import one_line

    named = next((record for record in report.incident.exceptions if record.type), None)
    what = one_line(f"{named.type}: {named.message}" if named else "no exception", 70)
    where = f"line {named.log_line}: " if named and named.log_line else ""
    cause = report.findings[0].cause if report.findings else "not recognised"
    return f"{where}{what}  ({cause})"
