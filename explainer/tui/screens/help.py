"""The page of `?`: every key."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from explainer.tui.keys import HELP


class Help(ModalScreen[None]):
    """Lists the keys; any of them closes it."""

    DEFAULT_CSS = """
    Help { align: center middle; }
    Help > Vertical {
        width: 76; max-width: 96%; height: auto; max-height: 96%; padding: 0 2;
        background: $panel; border: round $border; border-title-color: $text-accent;
    }
    Help VerticalScroll { height: auto; max-height: 100%; }
    Help Static { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter,space", "dismiss_help", "Close"),
        Binding("j,down", "scroll('down')", show=False),
        Binding("k,up", "scroll('up')", show=False),
    ]

    def compose(self) -> ComposeResult:
        """The keys by what they are for."""
        with Vertical() as box:
            box.border_title = "gradfix: keys"
            box.border_subtitle = "escape closes"
            with VerticalScroll():
                yield Static(_page())

    def action_dismiss_help(self) -> None:
        """Close."""
        self.dismiss(None)

    def action_scroll(self, way: str) -> None:
        """Move the page where it is higher than the terminal."""
        page = self.query_one(VerticalScroll)
        page.scroll_down() if way == "down" else page.scroll_up()


def _page() -> Content:
    lines: list[Content] = []
    for title, keys in HELP:
        lines.append(Content.styled(title, "bold $text-accent"))
        lines += [Content.assemble((f"  {key:<9}", "bold"), (said, "")) for key, said in keys]
    return Content("\n").join(lines)
