"""The dialog in which a person changes a fix before it is applied: the files as they will be."""

from __future__ import annotations

import os
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Footer, TabbedContent, TabPane, TextArea
from textual.widgets.text_area import Selection


class EditFix(ModalScreen[dict[str, str] | None]):
    """An editor for each file of the fix; ctrl+s takes what is written, escape nothing."""

    DEFAULT_CSS = """
    EditFix > Vertical { border: round $border; border-title-color: $text-accent; background: $background; }
    EditFix TextArea { border: none; padding: 0; }
    EditFix TabbedContent { height: 1fr; }
    EditFix Footer { dock: bottom; }
    """
    AUTO_FOCUS = "TextArea"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "take", "Take this text", priority=True),
        Binding("escape", "leave", "Leave it as planned", priority=True),
    ]

    def __init__(self, texts: dict[str, str], lines: dict[str, int]) -> None:
        super().__init__()
        self._texts = texts
        self._lines = lines

    def compose(self) -> ComposeResult:
        """A tab for each file where there are several."""
        with Vertical() as box:
            box.border_title = "the fix as it will be written"
            areas = [self._area(at, path) for at, path in enumerate(self._texts)]
            if len(areas) == 1:
                yield areas[0]
            else:
                with TabbedContent():
                    for path, area in zip(self._texts, areas, strict=True):
                        with TabPane(os.path.basename(path)):
                            yield area
        yield Footer(show_command_palette=False)

    def _area(self, at: int, path: str) -> TextArea:
        """An editor whose cursor stands at the first changed line."""
        area = TextArea(self._texts[path], show_line_numbers=True, soft_wrap=False, id=f"area{at}")
        area.selection = Selection.cursor((max(self._lines.get(path, 1) - 1, 0), 0))
        return area

    def on_mount(self) -> None:
        """The cursor is to be seen."""
        for area in self.query(TextArea):
            self.call_after_refresh(area.scroll_cursor_visible, center=True)

    def action_take(self) -> None:
        """Give the texts back."""
        self.dismiss({path: self.query_one(f"#area{at}", TextArea).text for at, path in enumerate(self._texts)})

    def action_leave(self) -> None:
        """Give nothing back."""
        self.dismiss(None)
