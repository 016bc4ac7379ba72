"""The screen of the fixes of a finding: each with its diff, whether it may be applied unasked, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from explainer.model.finding import Finding, Fix
from explainer.tui.screens.pane import Pane
from explainer.tui.widgets.diff import DiffView
from explainer.tui.widgets.text import prose, styled

if TYPE_CHECKING:
    from textual.widget import Widget

BADGES = {"safe": "bold $text-success", "unsafe": "bold $text-warning"}


class FixPane(Pane):
    """The fixes above, the chosen one's diff below."""

    DEFAULT_CSS = """
    FixPane #of { height: auto; max-height: 2; }
    FixPane #fixes { margin-top: 1; max-height: 5; }
    FixPane #cost { height: auto; margin-top: 1; }
    FixPane #diff-page { height: 1fr; margin-top: 1; border-top: solid $border-blurred; }
    """
    scroller = "#diff-page"
    first = "#diff-page"

    def build(self) -> Iterable[Widget]:
        """Title, list, cost, diff."""
        yield Static(id="of")
        yield OptionList(id="fixes", compact=True)
        yield Static(id="cost")
        yield VerticalScroll(DiffView(id="diff"), Static(id="advice"), id="diff-page")

    @property
    def is_beside(self) -> bool:
        """Whether the diff is shown side by side."""
        return self.query_one(DiffView).is_beside

    async def draw(self) -> None:
        """The fixes of the chosen finding."""
        finding = self.session.finding
        fixes = self.query_one("#fixes", OptionList)
        fixes.display = finding is not None and bool(finding.fixes)
        self.query_one("#of", Static).update(self._title(finding))
        fixes.clear_options()
        if finding is not None:
            fixes.add_options(Option(self._row(at, one)) for at, one in enumerate(finding.fixes))
            fixes.highlighted = self.session.at_fix if finding.fixes else None
        self.draw_fix()

    def draw_fix(self) -> None:
        """The chosen fix alone."""
        fix = self.session.fix
        fixes = self.query_one("#fixes", OptionList)
        if fix is not None and fixes.highlighted != self.session.at_fix:
            fixes.highlighted = self.session.at_fix
        diff, advice = self.query_one(DiffView), self.query_one("#advice", Static)
        diff.display = fix is not None and bool(fix.patch)
        advice.display = not diff.display
        self.query_one("#cost", Static).update(self._cost(fix))
        if fix is None:
            advice.update(prose("no fix: open a log first, or choose another finding with `]`"))
            return
        if fix.patch:
            diff.show(fix.patch, is_beside=self.is_beside)
        else:
            text = (
                f"run it by hand: `{fix.command}`"
                if fix.command
                else "advice, to be done by hand: `e` opens the line in your editor"
            )
            advice.update(prose(text))
        self.query_one("#diff-page", VerticalScroll).scroll_home(animate=False)

    def turn(self) -> str:
        """Show the diff in the other form; what is to be said about it."""
        diff = self.query_one(DiffView)
        diff.show(self.session.fix.patch or "" if self.session.fix else "", is_beside=not diff.is_beside)
        narrow = diff.is_beside and diff.size.width < DiffView.SIDE
        return f"side by side needs {DiffView.SIDE} columns; here is the unified diff" if narrow else ""

    def _title(self, finding: Finding | None) -> Content:
        if finding is None:
            return styled("nothing to fix", "bold")
        count = len(self.session.report.findings) if self.session.report else 1
        which = f"  finding {self.session.at_finding + 1} of {count}" if count > 1 else ""
        return Content.assemble(styled(finding.cause, "bold $text-primary"), (which, "$quiet"))

    def _row(self, at: int, fix: Fix) -> Content:
        kind = fix.applicability if fix.changes else fix.kind
        done = Content.styled("applied ", "bold $text-accent") if self.session.is_applied(fix) else Content("")
        return Content.assemble(
            (f"{at + 1} ", "$quiet"), (f"{kind:<9}", BADGES.get(kind, "$quiet")), done, prose(fix.title)
        )

    def _cost(self, fix: Fix | None) -> Content:
        if fix is None:
            return Content("")
        if self.session.is_applied(fix):
            state = " v verifies it, u takes it back"
        elif not fix.changes:
            state = ""
        else:
            state = " a applies it" if fix.applicability == "safe" else " a applies it, after a question"
        return prose(fix.because, "$quiet") + Content.styled(state, "bold $text-accent")

    async def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """The cursor chooses the fix."""
        event.stop()
        if self.session.choose_fix(event.option_index):
            self.draw_fix()
            self.app.refresh_bindings()
