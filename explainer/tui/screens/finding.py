"""The screen of a finding: what failed, the ranked causes, the guilty source, evidence, what to do and what not."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import OptionList, ProgressBar, Static
from textual.widgets.option_list import Option

from explainer.render.memory import change_lines, changes_heading, seen_line
from explainer.render.visible import one_line
from explainer.tui.screens.pane import Pane
from explainer.tui.widgets.source import SourceView
from explainer.tui.widgets.text import Item, prose, short, styled

if TYPE_CHECKING:
    from textual.widget import Widget

    from explainer.model.finding import Culprit, Finding
    from explainer.model.report import Report, Unknown
    from explainer.tui.session import Session
    from explainer.tui.worker.reading import Reading

MAX_MESSAGE = 200
MAX_EVIDENCE = 8
MAX_CHANGES = 8
MAX_CULPRITS = 3
INTRO = """Nothing is open.

`gradfix ui train.log` explains a log, `python train.py 2>&1 | gradfix ui -` what comes from a pipe, and \
`gradfix ui -- python train.py` runs the program here.

`5` browses the rules, `4` the patches that were applied, `?` shows the keys."""


class FindingPane(Pane):
    """Causes above, the chosen one below; in a wide terminal its source and evidence stand beside it."""

    DEFAULT_CSS = """
    FindingPane #head { height: auto; max-height: 4; }
    FindingPane #causes { margin-top: 1; max-height: 4; }
    FindingPane ProgressBar { margin-top: 1; display: none; }
    FindingPane ProgressBar.-on { display: block; }
    FindingPane #body { height: 1fr; margin-top: 1; }
    FindingPane #left { width: 1fr; }
    FindingPane #right { width: 1fr; display: none; margin-left: 2; }
    FindingPane.-wide #right { display: block; }
    FindingPane .title { text-style: bold; }
    FindingPane .place { color: $text-primary; }
    FindingPane .because { color: $quiet; }
    FindingPane SourceView { margin: 0 0 1 0; }
    """
    scroller = "#left"
    first = "#left"

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(session, name)
        self._drawn: tuple[Report | None, Finding, bool, list[object]] | None = None

    def build(self) -> Iterable[Widget]:
        """Head, list, body."""
        yield Static(id="head")
        yield ProgressBar(show_eta=False, id="progress")
        yield OptionList(id="causes", compact=True)
        yield Horizontal(VerticalScroll(id="left"), VerticalScroll(id="right"), id="body")

    async def draw(self) -> None:
        """The report, or what to do where there is none."""
        report = self.session.report
        self.query_one("#progress").remove_class("-on")
        causes = self.query_one("#causes", OptionList)
        causes.display = report is not None and bool(report.findings)
        if report is None:
            self.query_one("#head", Static).update("")
            await self._fill([Static(prose(INTRO))], [])
            return
        self.query_one("#head", Static).update(_head(report, self.session.failure, len(self.session.incidents)))
        causes.clear_options()
        causes.add_options(Option(_row(at, one), id=one.cause) for at, one in enumerate(report.findings))
        causes.highlighted = self.session.at_finding if report.findings else None
        await self.draw_finding()

    async def draw_finding(self) -> None:
        """The chosen finding alone."""
        report, finding = self.session.report, self.session.finding
        self.set_class(self.is_wide, "-wide")
        if finding is None:
            unknown = report.unknown if report is not None else None
            await self._fill(list(_unknown(unknown)) if unknown else [Static("no cause fits")], [])
            return
        causes = self.query_one("#causes", OptionList)
        if causes.highlighted != self.session.at_finding:
            causes.highlighted = self.session.at_finding
        root = self.session.root
        sources = [_stamp(os.path.join(root, one.file)) for one in finding.culprits[:MAX_CULPRITS]]
        drawn = self._drawn
        if drawn is not None and drawn[0] is report and drawn[1] is finding and drawn[2:] == (self.is_wide, sources):
            return  # back from another screen: what is read there, and how far, stays
        if self.is_wide:
            await self._fill(
                [*_what(finding), *_remembered(report), *_do(finding), *_not(finding), *_otherwise(finding)],
                [*_where(finding, root, around=9), *_seen(report), *_why(finding)],
            )
        else:
            await self._fill(
                [
                    *_what(finding),
                    *_remembered(report),
                    *_where(finding, root, around=2),
                    *_seen(report),
                    *_why(finding),
                    *_do(finding),
                    *_not(finding),
                    *_otherwise(finding),
                ],
                [],
            )
        self._drawn = (report, finding, self.is_wide, sources)

    async def _fill(self, left: list[Widget], right: list[Widget]) -> None:
        self._drawn = None
        self.set_class(bool(right), "-wide")
        with self.app.batch_update():
            for name, widgets in (("#left", left), ("#right", right)):
                page = self.query_one(name, VerticalScroll)
                await page.remove_children()
                await page.mount_all(widgets)
                page.scroll_home(animate=False)

    async def show_fault(self, message: str, what_to_do: str) -> None:
        """An input that cannot be explained, and what to do."""
        self.query_one("#progress").remove_class("-on")
        self.query_one("#causes").display = False
        self.query_one("#head", Static).update(styled(one_line(message, 400), "bold $text-error"))
        await self._fill([Static(prose(what_to_do))], [])

    async def show_waiting(self, message: str) -> None:
        """What is being done before there is a report."""
        self.query_one("#causes").display = False
        self.query_one("#head", Static).update(prose(message))
        await self._fill([Static(id="tail", classes="quiet")], [])

    def show_reading(self, reading: Reading) -> None:
        """How far the reading is: of a file the share, of a pipe the last lines. Nothing while the screen is taken down."""
        for bar in self.query("#progress").results(ProgressBar):
            bar.add_class("-on")
            bar.update(total=reading.total or None, progress=reading.read)
        size = f"{reading.read / 1e6:,.1f} MB"
        of = f" of {reading.total / 1e6:,.1f} MB" if reading.total else ""
        name = "standard input" if reading.path == "-" else os.path.basename(reading.path)
        for head in self.query("#head").results(Static):
            head.update(prose(f"reading {name}: {size}{of}   `x` stops"))
        if reading.total is None:
            for page in self.query("#tail").results(Static):
                page.update(Content("\n".join(reading.tail[-max(self.size.height - 6, 4) :])))

    async def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """The cursor chooses the finding."""
        event.stop()
        if self.session.choose_finding(event.option_index):
            await self.draw_finding()
            self.app.refresh_bindings()

    async def on_resize(self) -> None:
        """Another layout where the width asks for it."""
        if self.is_built and self.session.finding is not None and self.has_class("-wide") != self.is_wide:
            await self.draw_finding()


def _stamp(path: str) -> object:
    """What tells that a source was edited since it was shown, here or in an editor."""
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size


def _head(report: Report, at: int, count: int) -> Content:
    """What happened, in the user's own names."""
    from explainer.model.incident import CAUGHT
    from explainer.render.terminal import main_exception

    incident = report.incident
    record = main_exception(incident)
    which = f"   failure {at + 1} of {count}, ( ) for the others" if count > 1 else ""
    if record is None or not record.type:
        what = (
            incident.warnings[0].message
            if incident.warnings
            else f"a log of {len(incident.metrics)} rows without an exception"
        )
        return Content.assemble(styled(one_line(what, MAX_MESSAGE), "$text-warning"), (which, "$quiet"))
    frame = next((one for one in reversed(record.frames) if one.library is None), None)
    parts: list[Content] = []
    if frame is not None:
        place = f"{os.path.basename(frame.file.replace(chr(92), '/'))}:{frame.line}"
        code = f"`{one_line(frame.code.partition(chr(10))[0], 50)}`" if frame.code else "your code"
        parts.append(prose(f"{code} at {place} raised", "$quiet") + Content.styled(which, "$quiet"))
    text = f"{record.type}: {record.message}" if record.message else record.type
    parts.append(styled(one_line(text, MAX_MESSAGE), "$text-error"))
    caught = incident.fact(CAUGHT)
    if caught is not None:
        parts.append(prose(str(caught.value), "$text-warning"))
    return Content("\n").join(parts)


def _row(at: int, finding: Finding) -> Content:
    """A cause in one line."""
    from explainer.model.finding import CERTAIN, LIKELY

    style = {CERTAIN: "bold $text-success", LIKELY: "bold $text-warning"}.get(finding.confidence, "$quiet")
    belief = "certain" if finding.confidence == CERTAIN else f"{finding.confidence} {min(finding.score, 0.99):.0%}"
    return Content.assemble(
        (f"{at + 1} ", "$quiet"),
        (f"{belief:<13}", style),
        styled(finding.cause, "bold"),
        styled(f"  {finding.title}", ""),
    )


def _what(finding: Finding) -> Iterator[Widget]:
    yield Static(prose(finding.title), classes="title")
    if finding.kind == "notice":
        yield Static("nothing is wrong: this needs no action", classes="place")
    yield Item("what", prose(finding.summary), gap=True)


def _remembered(report: Report | None) -> Iterator[Widget]:
    """Earlier sightings of the failure, and what changed since the last good run."""
    if report is not None and report.seen is not None:
        yield Item("seen", prose(seen_line(report.seen).removeprefix("seen ")), gap=True)
    if report is not None and report.changes is not None:
        yield Item("change", prose(changes_heading(report.changes)), gap=True)
        for line in change_lines(report.changes.items, MAX_CHANGES, hint=""):
            yield Item("", prose(line, "$quiet"))


def _where(finding: Finding, root: str, *, around: int) -> Iterator[Widget]:
    for at, culprit in enumerate(finding.culprits[:MAX_CULPRITS]):
        yield Item("where" if at == 0 else "", _place(culprit), gap=at == 0)
        if culprit.code or culprit.line:
            yield SourceView(culprit, root, around=around if at == 0 else min(around, 2))


def _place(culprit: Culprit) -> Content:
    place = culprit.file + (f":{culprit.line}" if culprit.line else "")
    inside = f" in {culprit.function}" if culprit.function else ""
    return Content.assemble(
        styled(place, "bold $text-primary"), styled(inside), prose(f"  {culprit.why}" if culprit.why else "", "$quiet")
    )


def _seen(report: Report | None) -> Iterator[Widget]:
    """The lines that a trace saw."""
    for at, one in enumerate(report.incident.traced if report is not None else ()):
        sign = Content.styled("?" if one.is_guess else "●", "bold $text-accent")
        place = styled(f"{one.file}:{one.line}", "bold $text-primary")
        yield Item("traced" if at == 0 else "", place + Content("  ") + prose(one.says), mark=sign, gap=at == 0)


def _why(finding: Finding) -> Iterator[Widget]:
    shown = [one for one in finding.evidence if one.id != "signature"][:MAX_EVIDENCE] or finding.evidence[:1]
    for at, one in enumerate(shown):
        sign = Content.styled("−", "$text-error") if one.weight < 0 else Content.styled("+", "bold $text-success")
        text = prose(short(one.says), "$quiet" if one.weight < 0 else "") + Content.styled(
            f"  {one.reads}", "$quiet italic"
        )
        yield Item("why" if at == 0 else "", text, mark=sign, gap=at == 0)


def _do(finding: Finding) -> Iterator[Widget]:
    for at, fix in enumerate(finding.fixes):
        hint = Content.styled("  f shows the edit", "bold $text-accent") if fix.changes and at == 0 else Content("")
        number = Content.styled(f"{at + 1}", "bold $text-success")
        yield Item("do" if at == 0 else "", prose(fix.title) + hint, mark=number, gap=at == 0)
        if fix.command:
            yield Item("", styled(f"$ {fix.command}", "bold"), mark=Content(""))
        if fix.because and at == 0:
            yield Item("", prose(fix.because, "$quiet"), mark=Content(""))


def _not(finding: Finding) -> Iterator[Widget]:
    for at, myth in enumerate(finding.myths):
        text = prose(myth.remedy, "$text-warning") + prose(f": {myth.why}")
        yield Item("not" if at == 0 else "", text, gap=at == 0)


def _otherwise(finding: Finding) -> Iterator[Widget]:
    for at, other in enumerate(finding.look_alikes):
        text = styled(other.cause, "$text-primary") + prose(f": {other.decides}", "$quiet")
        yield Item("or" if at == 0 else "", text, gap=at == 0)
    if finding.proves_not:
        yield Item("note", prose(finding.proves_not, "$quiet"), gap=True)


def _unknown(unknown: Unknown) -> Iterator[Widget]:
    yield Static("the cause is not known", classes="title")
    yield Item("why", prose(unknown.why), gap=True)
    for at, near in enumerate(unknown.nearest):
        text = f"{near.similarity:.0%} {one_line(near.message, 160)}  ({', '.join(near.causes[:3])})"
        yield Item("near" if at == 0 else "", styled(text, "$quiet"), gap=at == 0)
    if unknown.missing:
        yield Item("missing", prose("; ".join(unknown.missing)), gap=True)
    if unknown.next_command:
        yield Item("next", styled(unknown.next_command, "bold $text-success"), gap=True)
