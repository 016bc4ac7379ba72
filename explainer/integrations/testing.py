"""Failed tests of pytest: a section in the report where the cause of the exception is known."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from typing import Any

import pytest

WIDTH = 96


class Explaining:
    """Adds a section `gradfix` to the report of a test whose exception has a known cause."""

    def __init__(self, config: pytest.Config) -> None:
        self._root = str(config.rootpath)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Explain an exception that is a failure: not a skip, an expected failure, an interrupt."""
        report = yield
        error = call.excinfo.value if call.excinfo is not None else None
        if report.failed and isinstance(error, Exception):
            try:
                text = self._explain(error)
            except Exception as fault:  # noqa: BLE001 - the test's own report must come whatever we do
                text = f"internal error: {type(fault).__name__}: {fault}" if os.environ.get("GRADFIX_DEBUG") else ""
            if text:
                report.sections.append(("gradfix", text))
        return report

    def _explain(self, error: Exception) -> str:
        """The card; nothing where torch is not in the process or the cause is not known."""
        if "torch" not in sys.modules:
            return ""
        from explainer.catalog.bundle import load_catalog
        from explainer.render.terminal import Layout, render_terminal
        from explainer.workflow import explain_incident, localise, read_incidents

        catalog = load_catalog(None)
        report = explain_incident(read_incidents(error)[-1], None, catalog)
        if not report.findings:
            return ""
        return render_terminal(
            localise(report, catalog, root=self._root, mask=True, variables=os.environ), Layout(width=WIDTH)
        )
