"""What the six screens have in common: they are built when first shown, and drawn from the session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import OptionList

from explainer.tui.session import Session


class Pane(Vertical):
    """A screen. `scroller` names what j, k, g and G move; `first` what has the focus at first."""

    DEFAULT_CSS = """
    Pane { height: 1fr; padding: 0 1; }
    Pane OptionList {
        border: none; padding: 0; background: $background; height: auto; max-height: 6; scrollbar-size-vertical: 1;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    Pane OptionList:focus, Pane Log:focus, Pane DataTable:focus { background-tint: $foreground 0%; }
    Pane VerticalScroll { scrollbar-size-vertical: 1; }
    Pane .quiet { color: $quiet; }
    Pane .rule { border-top: solid $border-blurred; }
    """
    scroller = ""
    first = ""

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(id=name)
        self.session = session
        self._is_built = False
        self._building = asyncio.Lock()

    def build(self) -> Iterable[Widget]:
        """The widgets of the screen."""
        return ()

    async def draw(self) -> None:
        """Show what the session says now."""

    async def show(self) -> None:
        """Build the screen where that was not done, and draw it."""
        # A key and a click may both ask for it, and its widgets are there only once they are mounted.
        async with self._building:
            if not self._is_built:
                await self.mount_all(self.build())
                self._is_built = True
        await self.draw()

    @property
    def is_built(self) -> bool:
        """Whether it was ever shown."""
        return self._is_built

    @property
    def is_wide(self) -> bool:
        """Whether there is room for two columns."""
        return self.app.size.width >= 110

    def take_focus(self) -> None:
        """Give the focus to the part that is used most."""
        if self._is_built and self.first:
            self.query_one(self.first).focus()

    def move(self, way: str) -> None:
        """Move by a line, or to an end: the cursor of a list that has the focus, else the page."""
        focused = self.screen.focused
        if isinstance(focused, OptionList):
            {
                "down": focused.action_cursor_down,
                "up": focused.action_cursor_up,
                "home": focused.action_first,
                "end": focused.action_last,
            }[way]()
        elif self._is_built and self.scroller:
            page = focused if focused is not None and focused.allow_vertical_scroll else self.query_one(self.scroller)
            {"down": page.scroll_down, "up": page.scroll_up, "home": page.scroll_home, "end": page.scroll_end}[way](
                animate=False
            )
