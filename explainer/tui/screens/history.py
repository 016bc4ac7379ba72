"""The screen of the applied patches: when, what, its diff; undo."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from explainer.model.journal import APPLIED, Record
from explainer.render.mask import mask_text
from explainer.tui.screens.pane import Pane
from explainer.tui.widgets.diff import DiffView
from explainer.tui.widgets.text import prose, styled

if TYPE_CHECKING:
    from textual.widget import Widget

STATES = {APPLIED: "bold $text-success"}


class HistoryPane(Pane):
    """The records above, newest first, the chosen one's diff below."""

    DEFAULT_CSS = """
    HistoryPane #records { max-height: 8; }
    HistoryPane #about { height: auto; margin-top: 1; }
    HistoryPane #record-page { height: 1fr; margin-top: 1; border-top: solid $border-blurred; }
    """
    scroller = "#record-page"
    first = "#records"

    def build(self) -> Iterable[Widget]:
        """List, description, diff."""
        self._records: list[Record] = []
        self._drawn: Record | None = None
        yield OptionList(id="records", compact=True)
        yield Static(id="about")
        yield VerticalScroll(DiffView(id="record-diff"), id="record-page")

    async def draw(self) -> None:
        """The project's patches as the journal has them now."""
        chosen = self.chosen.id if self.chosen is not None else None
        self._records = list(reversed(self.session.history()))
        records = self.query_one("#records", OptionList)
        records.clear_options()
        records.add_options(Option(_row(one)) for one in self._records)
        records.display = bool(self._records)
        ids = [one.id for one in self._records]
        if self._records:
            records.highlighted = ids.index(chosen) if chosen in ids else 0
        self._draw_record()

    @property
    def chosen(self) -> Record | None:
        """The patch that the cursor is on."""
        if not self.is_built:
            return None
        at = self.query_one("#records", OptionList).highlighted
        return self._records[at] if at is not None and at < len(self._records) else None

    def show_obstacle(self, reason: str, diff: str) -> None:
        """Why a patch was not taken back, and the change that stands in the way."""
        self.query_one("#about", Static).update(styled(reason, "bold $text-error"))
        if diff:
            self.query_one(DiffView).show(mask_text(diff), is_beside=False)

    def _draw_record(self) -> None:
        from explainer.workflow import diff_of

        record = self._drawn = self.chosen
        diff = self.query_one(DiffView)
        if record is None:
            self.query_one("#about", Static).update("no patch was applied to this project")
            diff.show("", is_beside=False)
            return
        names = ", ".join(os.path.relpath(one.file, record.root) for one in record.files)
        after = "  u takes it back" if record.state == APPLIED else ""
        self.query_one("#about", Static).update(
            Content.assemble(prose(f"{record.title}  "), styled(names, "$text-primary"), (after, "bold $text-accent"))
        )
        diff.show(mask_text(diff_of(record)), is_beside=False)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """The cursor chooses the patch."""
        event.stop()
        if self.chosen is not None and self.chosen != self._drawn:
            self._draw_record()
        self.app.refresh_bindings()


def _row(record: Record) -> Content:
    when = datetime.fromtimestamp(record.time, timezone.utc).astimezone().strftime("%Y-%m-%d %H:%M")
    note = f"  {record.note}" if record.note else ""
    return Content.assemble(
        (f"{record.id}  ", "$text-primary"),
        (f"{when}  ", "$quiet"),
        (f"{record.state:<9}", STATES.get(record.state, "$quiet")),
        styled(record.cause),
        styled(f"  {record.fix}{note}", "$quiet"),
    )
