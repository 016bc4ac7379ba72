"""The gradients of a program by its modules: a table with a bar for each norm; long lists of layers as one line each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from explainer.model.verification import ModuleHealth
from explainer.render.visible import one_line

_BARS = "▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_CELLS = 12
_DECADES = 4  # norms of a network span that much; what is smaller is an empty bar
MAX_ROWS = 40
MAX_APART = 6  # numbered layers up to which each has a line of its own
_HEAD = ("module", "params", "grad", "zero", "bad")

Paint = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the table: one module, or the numbered layers of one list."""

    name: str
    modules: tuple[ModuleHealth, ...]

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Parameters, with a gradient, with only zero ones, with one that is not finite."""
        return tuple(
            map(sum, zip(*((one.parameters, one.given, one.zero, one.bad) for one in self.modules), strict=True))
        )  # type: ignore[return-value]


def module_table(modules: Sequence[ModuleHealth], *, width: int, paint: Paint) -> Iterator[str]:
    """The lines of the table, none where there are no modules."""
    if not modules:
        return
    lines = list(_lines(modules))
    largest = max((one.norm for one in modules if one.norm is not None), default=0.0)
    room = max(width - 52, 12)
    names = [_short(one.name, room) for one in lines[:MAX_ROWS]]
    wide = max(len(one) for one in (*names, _HEAD[0]))
    yield f"  {_HEAD[0]:{wide}}  " + " ".join(f"{one:>6}" for one in _HEAD[1:]) + "  gradient norm"
    for name, line in zip(names, lines, strict=False):
        total, given, zero, bad = line.counts
        cells = [f"{total:>6}", paint(f"{given:>6}", "33" if given < total else ""), paint(f"{zero:>6}", "33" if zero else ""),
                 paint(f"{bad:>6}", "31" if bad else "")]  # fmt: skip
        yield f"  {name:{wide}}  {' '.join(cells)}  {_picture(line, largest)}".rstrip()
    if len(lines) > MAX_ROWS:
        yield f"  and {len(lines) - MAX_ROWS} more modules"


def _lines(modules: Sequence[ModuleHealth]) -> Iterator[_Line]:
    """Each module by itself; the layers of one numbered list together where they are many."""
    lists: dict[str, list[ModuleHealth]] = {}
    for one in modules:
        stem, _, last = one.name.rpartition(".")
        if last.isdigit():
            lists.setdefault(stem, []).append(one)
    for one in modules:
        stem, _, last = one.name.rpartition(".")
        if not last.isdigit() or len(lists[stem]) <= MAX_APART:
            yield _Line(one.name, (one,))
        elif lists[stem][0] is one:
            yield _Line(f"{stem}.{last}-{lists[stem][-1].name.rpartition('.')[2]}", tuple(lists[stem]))


def _picture(line: _Line, largest: float) -> str:
    """A bar and the norm; for layers a small bar each, and the least and greatest norm."""
    if len(line.modules) == 1:
        (one,) = line.modules
        return f"{_bar(one.norm, largest)} {_number(one)}"
    known = [one.norm for one in line.modules if one.norm is not None]
    span = f"{min(known):.3g} … {max(known):.3g}" if known else _number(line.modules[0])
    return f"{''.join(_small(one, largest) for one in line.modules)} {span}"


def _share(norm: float | None, largest: float) -> float:
    """The height of a norm from 0 to 1, by its logarithm over four decades below the largest."""
    if not norm or not largest:
        return 0.0
    return min(max(1 + math.log10(norm / largest) / _DECADES, 0.0), 1.0)


def _bar(norm: float | None, largest: float) -> str:
    eighths = round(_share(norm, largest) * _CELLS * 8)
    whole, part = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[part] if part else "")).ljust(_CELLS)


def _small(one: ModuleHealth, largest: float) -> str:
    if one.norm is None:
        return "×" if one.bad else "·"
    return _BARS[round(_share(one.norm, largest) * (len(_BARS) - 1))] if one.norm else "·"


def _number(one: ModuleHealth) -> str:
    if one.norm is None:
        return "not finite" if one.bad else "none"
    return f"{one.norm:.3g}"


def _short(name: str, room: int) -> str:
    """The end of a name tells more than its beginning."""
    name = one_line(name, 300)
    return name if len(name) <= room else f"…{name[-room + 1 :]}"
