"""What the shell offers where an id is wanted: causes, families, edits, patches. torch is not imported for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from explainer.errors import GradfixError

MAX_LOG = 8 << 20  # a larger log would make the shell wait


def causes(ctx: Any, incomplete: str) -> list[str]:
    """The ids of causes."""
    return _safely(lambda: (one for one in _ids(ctx) if one.startswith(incomplete)))


def families(ctx: Any, incomplete: str) -> list[str]:
    """The families of causes."""
    return _safely(lambda: (one for one in sorted({one.partition("/")[0] for one in _ids(ctx)}) if one.startswith(incomplete)))  # fmt: skip


def edits(ctx: Any, incomplete: str) -> list[str]:
    """The ids of the edits for the log that is named on the line; of all edits where none is, or it cannot be read."""
    return _safely(lambda: (one for one in _edits(ctx) if one.startswith(incomplete)))


def patches(ctx: Any, incomplete: str) -> list[str]:
    """The ids of the patches that are applied in the project."""
    return _safely(lambda: (one for one in _patches(ctx) if one.startswith(incomplete)))


def _safely(offer: Callable[[], Iterator[str]]) -> list[str]:
    """What is offered; nothing where the rules or the log cannot be read: the shell is no place for errors."""
    try:
        return list(dict.fromkeys(offer()))
    except (GradfixError, OSError):
        return []


def _ids(ctx: Any) -> Iterator[str]:
    from explainer.catalog.bundle import load_catalog

    yield from sorted(load_catalog(ctx.params.get("knowledge")).cause_ids)


def _edits(ctx: Any) -> Iterator[str]:
    from explainer.catalog.bundle import load_catalog

    catalog = load_catalog(ctx.params.get("knowledge"))
    path = next(iter(ctx.args), None) or ctx.params.get("log") or "-"  # while a line is open its words are in `args`
    if path != "-" and os.path.isfile(path) and os.path.getsize(path) <= MAX_LOG:
        from explainer.workflow import explain_incident, plan_report, read_log

        incident = read_log(path, stream=None, tracebacks_only=False, on_chunk=None)[-1]
        root = os.path.realpath(ctx.params.get("root") or os.getcwd())
        report = plan_report(explain_incident(incident, None, catalog), catalog, root)
        found = [fix.id for finding in report.findings for fix in finding.fixes if fix.changes]
        if found:
            yield from found
            return
    for name in catalog.cause_ids:
        yield from (fix.id for fix in catalog.cause(name).fixes if fix.codemod)


def _patches(ctx: Any) -> Iterator[str]:
    from explainer.model.journal import APPLIED
    from explainer.workflow import history

    yield from (one.id for one in reversed(history(ctx.params.get("root") or os.getcwd())) if one.state == APPLIED)
