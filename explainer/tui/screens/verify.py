"""The screen of a run: its output, loss and gradient norm step by step, health by module, memory, the verdict."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Log, Static

from explainer.model.verification import GREEN, RED, LiveStep, ProcessReport, Verification
from explainer.render.module import module_table
from explainer.tui.screens.pane import Pane
from explainer.tui.widgets.plot import Plot
from explainer.tui.widgets.text import prose, styled
from explainer.tui.worker.live import MAX_LINES

if TYPE_CHECKING:
    from textual.widget import Widget

_SGR = re.compile(r"\x1b\[(\d+)m(.*?)\x1b\[0m")
_STYLES = {"31": "bold $text-error", "33": "$text-warning"}
NO_STEP = "no step yet"
NO_LOSS = "a plain run does not read it; v does"
IDLE = """Nothing has run here yet.

`v` runs the program for a few optimizer steps under watch, and judges losses and gradients. Trackers are off, saves go to \
a scratch folder, and the project's files are put back as they were."""


class VerifyPane(Pane):
    """Verdict above, plots below it, then health or output; both where there is room."""

    DEFAULT_CSS = """
    VerifyPane #upper { height: auto; }
    VerifyPane #verdict { height: auto; max-height: 5; }
    VerifyPane #doing { height: auto; max-height: 2; color: $quiet; }
    VerifyPane #plots { height: 7; margin-top: 1; }
    VerifyPane #lower { height: 1fr; margin-top: 1; border-top: solid $border-blurred; }
    VerifyPane #health-page { width: 1fr; }
    VerifyPane #health { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    VerifyPane #output { width: 1fr; background: $background; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    VerifyPane.-idle #plots, VerifyPane.-idle #lower { display: none; }
    VerifyPane.-output #health-page { display: none; }
    VerifyPane.-health #output { display: none; }
    VerifyPane.-wide #health-page, VerifyPane.-wide #output { display: block; }
    VerifyPane.-wide #health-page { width: 3fr; }
    VerifyPane.-wide #output { width: 2fr; border-left: solid $border-blurred; padding-left: 1; }
    VerifyPane.-wide #plots { height: 11; }
    VerifyPane.-wide Plot { height: 11; }
    """
    scroller = "#output"
    first = "#output"

    def build(self) -> Iterable[Widget]:
        """Verdict, plots, output."""
        self._series: dict[tuple[int, str], list[LiveStep]] = {}
        yield Vertical(Static(prose(IDLE), id="verdict"), Static(id="doing"), id="upper")
        yield Horizontal(Plot("loss", NO_STEP, id="loss"), Plot("gradient norm", NO_STEP, id="norm"), id="plots")
        yield Horizontal(
            VerticalScroll(Static(id="health"), id="health-page"),
            Log(max_lines=MAX_LINES, id="output"),
            id="lower",
        )

    async def draw(self) -> None:
        """The layout; what it shows comes from the run."""
        self.set_class(self.is_wide, "-wide")

    async def show(self) -> None:
        """Idle until the first run."""
        if not self.is_built:
            self.add_class("-idle", "-output")
        await super().show()

    def begin(self, title: str, command: str) -> None:
        """A run begins."""
        self.remove_class("-idle", "-health")
        self.add_class("-output")
        self._series.clear()
        self.query_one("#verdict", Static).update(
            Content.assemble((title, "bold $text-accent"), ("   x stops it", "$quiet"))
        )
        self.query_one("#doing", Static).update(styled(f"$ {command}", "$quiet"))
        self.query_one("#output", Log).clear()
        self.query_one("#health", Static).update("")
        for plot in self.query(Plot):
            plot.show([], empty=NO_STEP)

    def feed(self, lines: Sequence[str], steps: Sequence[LiveStep], doing: str) -> None:
        """What came from the run since the last time."""
        if lines:
            self.query_one("#output", Log).write_lines(lines)
        for one in steps:
            self._series.setdefault((one.pid, one.optimizer), []).append(one)
        if steps:
            self._plot()
        self.query_one("#doing", Static).update(styled(doing, "$quiet"))

    def _plot(self) -> None:
        """The first optimizer of the first process; what others do stands in the health."""
        rows = next(iter(self._series.values()))
        losses = [one.loss for one in rows if one.loss is not None]
        norms = [math.nan if one.norm is None else one.norm for one in rows if one.is_seen]
        self.query_one("#loss", Plot).show(losses, empty=NO_LOSS)
        self.query_one("#norm", Plot).show(norms, empty=NO_STEP, of=rows[-1].step)

    @property
    def last_step(self) -> LiveStep | None:
        """The last step that was told."""
        return next((rows[-1] for rows in self._series.values()), None) if self.is_built else None

    def end(self, verdict: Content, doing: str) -> None:
        """A run ended: what came of it."""
        self.query_one("#verdict", Static).update(verdict)
        self.query_one("#doing", Static).update(styled(doing, "$quiet"))

    def take_back(self, said: str) -> None:
        """What was verified here stands no longer."""
        if not self.has_class("-idle"):
            self.query_one("#verdict", Static).update(
                Content.assemble(("taken back", "bold $text-warning"), styled(f"  {said}"))
            )

    def show_health(self, proof: Verification, width: int) -> None:
        """The health of the gradients by module, and on what it ran."""
        lines = [Content.styled(one, "$quiet") for one in proof.notes]
        training = [one for one in proof.processes if one.rows or one.losses]
        for process in training:
            lines += _circumstances(process, is_alone=len(training) == 1)
            table = module_table(
                process.modules, width=width, paint=lambda text, code: f"\x1b[{code}m{text}\x1b[0m" if code else text
            )
            lines += [_painted(line[2:]) for line in table]
        self.query_one("#health", Static).update(
            Content("\n").join(lines or [styled("no optimizer step was seen", "$quiet")])
        )
        if training and proof.verdict != RED:
            self.turn(to_health=True)

    def turn(self, *, to_health: bool | None = None) -> None:
        """Health instead of output, or the other way, where only one has room."""
        to_health = not self.has_class("-health") if to_health is None else to_health
        self.set_class(to_health, "-health")
        self.set_class(not to_health, "-output")
        self.query_one("#health-page" if to_health else "#output").focus()

    def move(self, way: str) -> None:
        """The part that is shown moves."""
        self.scroller = "#health-page" if self.has_class("-health") else "#output"
        super().move(way)

    def on_resize(self) -> None:
        """Health beside the output where there is room."""
        self.set_class(self.is_wide, "-wide")


def verdict_of(proof: Verification, *, is_fixed: bool, is_past_known: bool = True) -> Content:
    """The verdict, why, and what to do next."""
    if proof.verdict == GREEN:
        said = "the program trains with this change" if is_fixed else "the program trains"
        doubt = "" if is_past_known else "\nthe log does not say after how many steps it failed; --steps goes further"
        return Content.assemble(
            ("verified", "bold $text-success"), (f"  {said}", ""), (f"  {_comparison(proof)}{doubt}", "$quiet")
        )
    style = "bold $text-error" if proof.verdict == RED else "bold $text-warning"
    lines = [Content.styled(proof.verdict, style) + Content("  ") + prose(proof.reasons[0] if proof.reasons else "")]
    lines += [prose(f"  {one}") for one in proof.reasons[1:2]]
    if is_fixed:
        hint = (
            "u takes the edit back   n explains what failed now"
            if proof.verdict == RED
            else "u takes the edit back   v tries again"
        )
        lines.append(Content.styled(hint, "bold $text-accent"))
    return Content("\n").join(lines)


def _comparison(proof: Verification) -> str:
    if proof.comparison is None or not proof.comparison.compared:
        return ""
    return f"{proof.comparison.compared} gradients compared with a twin: {proof.comparison.verdict}"


def _circumstances(process: ProcessReport, *, is_alone: bool) -> list[Content]:
    """What it ran on, its precision, memory and time."""
    machine = process.machine
    parts = [] if is_alone else [f"rank {process.rank}" if process.rank is not None else f"process {process.pid}"]
    if machine is not None:
        parts.append(f"{machine.device} ({machine.name})" if machine.name else machine.device)
        if machine.memory is not None:
            where = "GPU memory" if machine.memory_of == "device" else "memory"
            parts.append(f"{where} {in_bytes(machine.memory)} at its peak")
    parts += [", ".join(process.dtypes)] if process.dtypes else []
    parts += [f"autocast {', '.join(process.autocast)}"] if process.autocast else []
    parts += [f"{process.step_seconds:.3f} s a step"] if process.step_seconds is not None else []
    return [styled("  ".join(parts), "$quiet")]


def in_bytes(count: int) -> str:
    """A size as a person says it."""
    return f"{count / (1 << 30):.2f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.0f} MiB"


def _painted(line: str) -> Content:
    """A line with colour codes in the theme's colours."""
    parts: list[Content] = []
    end = 0
    for found in _SGR.finditer(line):
        parts += [Content(line[end : found.start()]), Content.styled(found[2], _STYLES.get(found[1], ""))]
        end = found.end()
    return Content.assemble(*parts, Content(line[end:]))
