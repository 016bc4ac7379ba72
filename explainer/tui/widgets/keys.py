"""The footer of keys, made anew only where other keys are offered."""

from __future__ import annotations

from textual.screen import Screen
from textual.widgets import Footer


class Keys(Footer):
    """Textual's footer, which makes all of its keys again whenever the focus moves, one screen after another up to five times."""

    def __init__(self) -> None:
        super().__init__(show_command_palette=False, compact=True)
        self._shown: list[tuple[str, str, bool]] = []
        self._is_asked = False

    def bindings_changed(self, screen: Screen[object]) -> None:
        """Look once, when all that was asked for is done."""
        self._bindings_ready = True
        if screen.app.app_focus and self.is_attached and screen is self.screen and not self._is_asked:
            self._is_asked = True
            self.call_after_refresh(self._follow)

    async def _follow(self) -> None:
        self._is_asked = False
        if not self.is_attached:
            return
        active = self.screen.active_bindings.values()
        offered = [(one.binding.key, one.binding.description, one.enabled) for one in active if one.binding.show]
        if offered != self._shown:
            self._shown = offered
            await self.recompose()
