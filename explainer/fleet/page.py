"""The report of a triage as one HTML file: charts, tables, clusters; no script, nothing fetched from anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from explainer.fleet.chart import MAX_SERIES, legend, rows_chart, series_of, time_chart
from explainer.fleet.cluster import Cluster
from explainer.fleet.row import STATUSES
from explainer.fleet.summary import UNKNOWN_CAUSE, Summary
from explainer.render.link import cause_link
from explainer.render.visible import one_line, visible

MAX_CAUSES, MAX_CLUSTERS = 100, 50
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee7733", "#997755", "#999999")
_STYLE = (
    ":root { color-scheme: light dark } body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem }"
    " table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .2rem .7rem .2rem 0; vertical-align: top;"
    " border-bottom: 1px solid #8884 } td.n, th.n { text-align: right } code, pre { font: .85em ui-monospace, monospace;"
    " overflow-wrap: anywhere } pre { background: #8882; padding: .5rem; white-space: pre-wrap; margin: .3rem 0 }"
    " svg { width: 100%; height: auto } svg text { font: 12px system-ui, sans-serif; fill: currentColor }"
    " .legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .85em }"
    " .legend i { display: inline-block; width: .8em; height: .8em; margin-right: .35em }"
) + "".join(f" .c{at} {{ fill: {colour}; background: {colour} }}" for at, colour in enumerate(_COLOURS))


def render_report(summary: Summary, cluster_files: Sequence[str], title: str) -> str:
    """The whole document; `cluster_files` are the names of the clusters' files, the most frequent first."""
    body = "\n".join(_body(summary, cluster_files, title))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(title)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _body(summary: Summary, cluster_files: Sequence[str], title: str) -> Iterator[str]:
    yield f"<h1>{_text(title)}</h1>"
    counts = ", ".join(f"{summary.statuses[one]} {one}" for one in STATUSES if summary.statuses[one])
    yield f"<p>{summary.objects} objects, {summary.failures} failures. Rows: {counts or 'none'}.</p>"
    ranked = summary.ranked()
    series = series_of([cause for cause, _ in ranked])
    if ranked:
        yield legend(series, has_others=len(ranked) > MAX_SERIES)
    for heading, chart in (
        ("Causes over time", time_chart(summary.by_hour, series)),
        ("By torch release", rows_chart(summary.by_version, series)),
        ("By GPU", rows_chart(summary.by_gpu, series)),
        ("By file of the users", rows_chart(summary.by_file, series)),
    ):
        yield f"<h2>{heading}</h2>{chart}"
    yield "<h2>Causes</h2>"
    yield _table(("failures|n", "share|n", "cause", "how sure", "most often at"), _cause_rows(summary))
    yield from _clusters(summary.clusters.ranked(), cluster_files, summary.clusters.dropped)
    if summary.unread:
        yield "<h2>Not read, or not to the end</h2>"
        yield _table(
            ("status", "object", "why"), ((_text(row.status), _code(row.file), _text(row.detail or "")) for row in summary.unread)
        )  # fmt: skip


def _cause_rows(summary: Summary) -> Iterator[Sequence[str]]:
    for cause, line in summary.ranked()[:MAX_CAUSES]:
        link = cause_link(cause, ()) if cause != UNKNOWN_CAUSE else None
        name = f'<a href="{escape(link)}">{_code(cause)}</a>' if link else _code(cause)
        sure = ", ".join(f"{count} {name}" for name, count in sorted(line.sure.items()))
        place = line.places.most_common(1)
        yield (
            str(line.count),
            f"{line.count / max(summary.failures, 1):.1%}",
            name,
            _text(sure),
            _code(place[0][0]) if place else "",
        )


def _clusters(clusters: Sequence[Cluster], files: Sequence[str], dropped: int) -> Iterator[str]:
    if not clusters:
        return
    yield "<h2>What is unknown, by message</h2>"
    yield "<p>Each file lays out a rule: <code>gradfix rules new FAMILY/SLUG --from-cluster FILE</code>.</p>"
    names = dict(enumerate(files))
    yield _table(
        ("failures|n", "exception and message", "seen", "file"),
        (
            (
                str(one.count),
                f"{_code(one.exception)}<pre>{_text(one.template)}</pre>",
                _text(f"{(one.first or '')[:10]} to {(one.last or '')[:10]}" if one.first else ""),
                _code(names[at]) if names.get(at) else "",
            )
            for at, one in enumerate(clusters[:MAX_CLUSTERS])
        ),
    )
    if len(clusters) > MAX_CLUSTERS or dropped:
        yield f"<p><small>and {max(len(clusters) - MAX_CLUSTERS, 0)} more clusters; {dropped} failures in none</small></p>"


def _table(heads: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    named = [head.partition("|") for head in heads]
    head = "".join(f'<th class="{kind}">{name}</th>' for name, _, kind in named)
    body = "".join(
        "<tr>" + "".join(f'<td class="{kind}">{cell}</td>' for cell, (_, _, kind) in zip(row, named, strict=True)) + "</tr>"
        for row in rows
    )  # fmt: skip
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _code(text: str) -> str:
    return f"<code>{escape(one_line(text, 300))}</code>"


def _text(text: str) -> str:
    return escape(visible(text))
