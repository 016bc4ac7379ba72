"""Bar charts as inline SVG: nothing is fetched, colours follow the page's light or dark scheme."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from explainer.render.visible import one_line

MAX_SERIES = 8
OTHERS = "(others)"
_WIDTH, _LABEL, _BAR, _GAP, _HEIGHT = 960, 250, 18, 6, 220


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Which causes have a colour of their own, in the order of their frequency; the others share one."""

    names: tuple[str, ...]

    def place(self, cause: str) -> int:
        """The number of a cause's colour."""
        return self.names.index(cause) if cause in self.names else len(self.names)

    def name(self, place: int) -> str:
        """The cause that has a colour."""
        return self.names[place] if place < len(self.names) else OTHERS


def series_of(causes: Sequence[str]) -> Series:
    """The colours for causes, the most frequent first."""
    return Series(names=tuple(causes[:MAX_SERIES]))


def legend(series: Series, *, has_others: bool) -> str:
    """The colours and their causes."""
    names = [*series.names, *([OTHERS] if has_others else [])]
    items = (f'<li><i class="c{at}"></i>{escape(one_line(name, 80))}</li>' for at, name in enumerate(names))
    return f'<ul class="legend">{"".join(items)}</ul>'


def rows_chart(table: Counter[tuple[str, str]], series: Series, limit: int = 15) -> str:
    """A horizontal stacked bar for each key of (key, cause), the longest first."""
    totals: Counter[str] = Counter()
    for (key, _), count in table.items():
        totals[key] += count
    keys = [key for key, _ in sorted(totals.items(), key=lambda item: (-item[1], item[0]))][:limit]
    if not keys:
        return "<p>Nothing to show.</p>"
    scale = (_WIDTH - _LABEL - 70) / totals[keys[0]]
    parts = []
    for row, key in enumerate(keys):
        y = row * (_BAR + _GAP)
        parts.append(_text(_LABEL - 8, y + 13, one_line(key, 38), "end"))
        x = float(_LABEL)
        for place, count in _shares(table, key, series):
            parts.append(_bar((x, y), (count * scale, _BAR), place, f"{key}: {series.name(place)}: {count}"))
            x += count * scale
        parts.append(_text(x + 6, y + 13, str(totals[key]), "start"))
    rest = f"<p><small>and {len(totals) - limit} more</small></p>" if len(totals) > limit else ""
    return _svg(len(keys) * (_BAR + _GAP), parts) + rest


def time_chart(by_hour: Counter[tuple[str, str]], series: Series, columns: int = 60) -> str:
    """Stacked columns over time, by hour, day or month, whichever gives at most `columns`."""
    if not by_hour:
        return "<p>No log carries a time.</p>"
    length = next((one for one in (13, 10, 7) if len({key[:one] for key, _ in by_hour}) <= columns), 4)
    table: Counter[tuple[str, str]] = Counter()
    totals: Counter[str] = Counter()
    for (key, cause), count in by_hour.items():
        table[key[:length], cause] += count
        totals[key[:length]] += count
    keys = sorted(totals)[-4 * columns :]
    step, scale = (_WIDTH - 60) / len(keys), (_HEIGHT - 50) / max(totals[key] for key in keys)
    parts = [_text(44, 22, str(max(totals[key] for key in keys)), "end"), _text(44, _HEIGHT - 28, "0", "end")]
    for at, key in enumerate(keys):
        y = float(_HEIGHT - 30)
        for place, count in _shares(table, key, series):
            y -= count * scale
            label = f"{_moment(key)}: {series.name(place)}: {count}"
            parts.append(_bar((50 + at * step, y), (max(min(step - 2, 60), 1), count * scale), place, label))
        if at % max(len(keys) // 8, 1) == 0:
            parts.append(_text(50 + at * step, _HEIGHT - 10, _moment(key), "start"))
    return _svg(_HEIGHT, parts)


def _moment(key: str) -> str:
    return f"{key.replace('T', ' ')}:00" if len(key) == 13 else key


def _shares(table: Counter[tuple[str, str]], key: str, series: Series) -> list[tuple[int, int]]:
    """The counts of one key by colour."""
    counts: Counter[int] = Counter()
    for cause in {cause for other, cause in table if other == key}:
        counts[series.place(cause)] += table[key, cause]
    return sorted(counts.items())


def _bar(at: tuple[float, float], size: tuple[float, float], place: int, title: str) -> str:
    shape = f'x="{at[0]:.1f}" y="{at[1]:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}"'
    return f'<rect class="c{place}" {shape}><title>{escape(one_line(title, 200))}</title></rect>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(height: float, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img">{"".join(parts)}</svg>'
