"""The report: charts and tables in one file that fetches nothing and obeys no log."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from explainer.fleet.page import render_report
from explainer.fleet.row import Row
from explainer.fleet.summary import UNKNOWN_CAUSE, Summary

EVIL = "</td><script>alert(1)</script>\u202e\x1b[31m&"


def failure(**more) -> Row:
    values = {"job": "j", "file": "a.log", "failure": 1, "status": "explained", "cause": "nan/sqrt-at-zero", "confidence": "likely",
              "kind": "failure", "time": "2026-05-01T12:00:01Z", "guilty_file": "/home/user/p/train.py", "guilty_line": 3}  # fmt: skip
    return Row(**{**values, **more})


def summary_of(*rows: Row) -> Summary:
    summary = Summary()
    for row in rows:
        summary.add(row)
    return summary


ROWS = [
    *(failure(time=f"2026-05-{day:02d}T12:00:01Z", versions=(("torch", "2.6.0"),), gpu="NVIDIA H100") for day in range(1, 9)),
    failure(cause="shape/batch-mismatch", versions=(("torch", "2.13.0"),)),
    failure(status="unknown", cause=None, confidence=None, kind=None, exception="E", message=EVIL, template=EVIL, guilty_file=EVIL),
    failure(kind="notice", cause="nan/scaler-skips"),
    Row(job=EVIL, file=EVIL, status="unreadable", detail=EVIL),
    Row(job="j", file="b.log", status="empty"),
]  # fmt: skip


def test_counts() -> None:
    """Notices are no failures; what was not read is listed."""
    summary = summary_of(*ROWS)
    assert (summary.objects, summary.failures, summary.notices, summary.is_all_read) == (13, 10, 1, False)
    assert [(cause, line.count) for cause, line in summary.ranked()] == [
        ("nan/sqrt-at-zero", 8), (UNKNOWN_CAUSE, 1), ("shape/batch-mismatch", 1),
    ]  # fmt: skip
    assert [row.status for row in summary.unread] == ["unreadable", "empty"]


def test_it_fetches_nothing_and_obeys_nothing() -> None:
    """No script, no style or image from elsewhere; what logs say is text."""
    page = render_report(summary_of(*ROWS), ["clusters/001-e.toml"], "Triage")
    assert not re.search(r"<script|<link|<img|<iframe|@import|url\(|\ssrc=|\son\w+=", page)
    assert "default-src 'none'" in page
    assert "alert(1)" in page
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert set(re.findall(r'href="(https?://[^/"]+)', page)) == {"https://gradfix.readthedocs.io"}


def test_the_charts_are_svg_that_adds_up() -> None:
    """Four charts, well formed; the bars of a chart are the failures that it can show."""
    page = render_report(summary_of(*ROWS), [], "Triage")
    charts = [ElementTree.fromstring(found) for found in re.findall(r"<svg.*?</svg>", page, re.S)]
    counts = [sum(int(title.text.rpartition(": ")[2]) for title in chart.iter("title")) for chart in charts]
    assert counts == [10, 10, 10, 10]
    assert all(
        float(bar.get("width")) > 0 and float(bar.get("height")) > 0 for chart in charts for bar in chart.iter("rect")
    )


@pytest.mark.parametrize(("days", "label"), [(1, "2026-05-01 12:00"), (28, "2026-05-01"), (100, "2026-05")])
def test_time_is_cut_to_what_fits(days: int, label: str) -> None:
    """Hours, days or months, whichever is legible."""
    rows = [
        failure(time=f"2026-{5 + day // 28:02d}-{1 + day % 28:02d}T{hour:02d}:00:00Z")
        for day in range(days)
        for hour in (12, 13, 14)
    ]
    page = render_report(summary_of(*rows), [], "Triage")
    assert f">{label}</text>" in page


def test_nothing_to_show() -> None:
    """A triage without failures has a report too."""
    page = render_report(summary_of(Row(job="j", file="b.log", status="empty")), [], "Triage")
    assert "1 objects, 0 failures" in page
