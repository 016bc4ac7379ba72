"""The application: six screens over one session, the keys, and what follows from them."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.content import Content
from textual.events import Key
from textual.screen import Screen
from textual.widgets import ContentSwitcher, Input, Static, Tab, Tabs

from explainer.model.verdict import RED
from explainer.render.visible import one_line
from explainer.tui.fixing import Fixing
from explainer.tui.keys import MAIN, QUIET, TABS, TITLES
from explainer.tui.screens.finding import FindingPane
from explainer.tui.screens.pane import Pane
from explainer.tui.session import NO_REASON, Options, Session, why_no_edit
from explainer.tui.settings import read_settings, remember
from explainer.tui.theme import DEFAULTS, THEMES, first_theme, next_theme
from explainer.tui.widgets.keys import Keys
from explainer.tui.widgets.text import prose, styled

GRACE = 20.0  # seconds from a signal to the end, of which what runs may take fifteen

if TYPE_CHECKING:
    from explainer.model.journal import Record
    from explainer.model.report import Report


class GradfixApp(Fixing):
    """`gradfix ui`."""

    TITLE = "gradfix"
    CSS = """
    Screen { background: $background; color: $foreground; }
    Tabs { height: 2; background: $background; }
    Tab { padding: 0 1; color: $quiet; }
    Tab.-active { color: $foreground; text-style: bold; }
    ContentSwitcher { height: 1fr; }
    #status { height: 1; padding: 0 1; background: $panel; color: $quiet; text-wrap: nowrap; text-overflow: ellipsis; }
    Footer { background: $footer-background; }
    ModalScreen { background: $background 70%; }
    ModalScreen:ansi { background: transparent; }
    Toast { background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*MAIN, *QUIET]
    ENABLE_COMMAND_PALETTE = True

    def __init__(self, options: Options) -> None:
        super().__init__(Session(options))
        self.at = TABS[0]
        self._panes: dict[str, Pane] = {}
        self._is_ready = self._is_leaving_for_sure = False
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = first_theme(read_settings().get("theme"))

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """What our styles name, for themes of Textual's that do not."""
        colours = self.current_theme.to_color_system().generate()
        return {name: colours.get(of, of) for name, of in DEFAULTS.items()}

    def compose(self) -> ComposeResult:
        """Tabs, the screen that is shown, the state, the keys."""
        yield Tabs(
            *(
                Tab(f"{at} {title}", id=f"tab-{name}")
                for at, (name, title) in enumerate(zip(TABS, TITLES, strict=True), 1)
            )
        )
        with ContentSwitcher(initial=TABS[0]):
            self._panes[TABS[0]] = FindingPane(self.session, TABS[0])
            yield self._panes[TABS[0]]  # the others are imported and made when they are first shown
        yield Static(id="status")
        yield Keys()

    async def on_mount(self) -> None:
        """Show the first screen, then begin what was asked for."""
        self.query_one(Tabs).can_focus = False
        await self.pane("finding").show()
        self.pane("finding").take_focus()
        self._leave_on_signals()
        self.follow()
        self._is_ready = True
        self.draw_status()
        gc.enable()  # `cli.ui` has switched it off for the start
        self.call_after_refresh(self.begin)

    def _leave_on_signals(self) -> None:
        """A closed terminal or a kill ends what runs, as q does, without asking."""
        import asyncio

        for number in (signal.SIGTERM, signal.SIGHUP):
            with suppress(ValueError, RuntimeError, NotImplementedError):  # not in the main thread
                asyncio.get_running_loop().add_signal_handler(number, self._leave_for_sure)
        if os.isatty(0) and not self.is_headless:
            self.set_interval(1.0, self._leave_a_dead_terminal)

    def _leave_a_dead_terminal(self) -> None:
        """End where the terminal has gone without a signal: its input is then at an end for ever, and reading it a busy loop."""
        import select

        watch = select.poll()
        watch.register(0, select.POLLHUP)
        with suppress(OSError):
            if any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in watch.poll(0)):
                self._leave_for_sure()

    def _leave_for_sure(self) -> None:
        """Leave, also where Textual waits for ever for a terminal that has gone to take what is still to be drawn."""
        import threading

        def end() -> None:
            self.end_work()
            os._exit(1)

        if not self.is_headless and not self._is_leaving_for_sure:
            self._is_leaving_for_sure = True
            timer = threading.Timer(GRACE, end)
            timer.daemon = True
            timer.start()
        self.leave_now()

    # Screens.

    def pane(self, name: str) -> Any:
        """The screen of that name."""
        return self._panes[name]

    def has_shown(self, name: str) -> bool:
        """Whether that screen was ever shown."""
        return name in self._panes and self._panes[name].is_built

    async def action_show(self, name: str) -> None:
        """Show a screen."""
        self.at = name
        switcher = self.query_one(ContentSwitcher)
        if name not in self._panes:
            kind = getattr(import_module(f"explainer.tui.screens.{name}"), f"{name.capitalize()}Pane")
            self._panes[name] = kind(self.session, name)
            await switcher.mount(self._panes[name])
        switcher.current = name
        self.query_one(Tabs).active = f"tab-{name}"
        pane = self.pane(name)
        await pane.show()
        pane.take_focus()
        self.refresh_bindings()

    async def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        """A click on a tab. What was shown since has activated another one: an old event that showed its screen would bring that back."""
        name = (event.tab.id or "").removeprefix("tab-")
        if name != self.at and event.tabs.active == event.tab.id:
            await self.action_show(name)

    def draw_status(self) -> None:
        """The line above the keys: what is open, what was found, what stands in the program."""
        session = self.session
        parts = [styled(self._opened(), "bold")]
        if self.doing:
            parts.append(styled(self.doing, "bold $text-warning"))
        last = session.last
        if last is not None:
            parts.append(styled(f"applied {last.record.fix}", "$text-accent"))
        if last is not None and last.proof is not None:
            verdict = "verified" if session.is_verified else last.proof.verdict
            parts.append(styled(verdict, "bold $text-success" if session.is_verified else "bold $text-error"))
        if session.finding is not None:
            parts.append(styled(session.finding.cause, "$text-primary"))
        self.query_one("#status", Static).update(Content("  ·  ").join(parts))

    def _opened(self) -> str:
        if self.session.command:
            return f"$ {one_line(self.session.command_line, 30)}"
        source = self.session.options.source
        return "standard input" if source == "-" else os.path.basename(source) if source else "no log"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Which keys are offered: those that do something here and now."""
        if not self._is_ready:
            return action == "leave"  # a footer of all the keys would be made and thrown away
        session = self.session
        offered = {
            "fix": self.at != "fix" and session.finding is not None,
            "apply": session.fix is not None
            and bool(session.fix.changes)
            and not session.is_applied(session.fix)
            and self.at in ("finding", "fix"),
            "edit_fix": self.at == "fix"
            and session.fix is not None
            and bool(session.fix.changes)
            and not session.is_applied(session.fix),
            "difference": self.at == "fix" and session.fix is not None and bool(session.fix.patch),
            "verify": (not self.doing or self.is_on_the_way) and self.at in ("finding", "fix", "verify"),
            "stop": bool(self.doing),
            "explain_next": self.at == "verify" and session.doubted is not None,
            "output": self.at == "verify"
            and self.has_shown("verify")
            and not self.pane("verify").has_class("-idle")
            and not self.pane("verify").is_wide,
            "undo": bool(session.applied) or self._is_on_applied(),
            "trace": not self.doing and session.report is not None and self.at in ("finding", "fix", "verify"),
            "editor": self._place() is not None and self.at in ("finding", "fix"),
        }
        return offered.get(action, True)

    def on_key(self, event: Key) -> None:
        """A key of ours that does nothing here says why."""
        name = next((one.action for one in MAIN if event.key in (one.key, one.key_display)), "")  # type: ignore[union-attr]
        if name and not self.check_action(name, ()):
            self.notify(self._why_not(name), severity="warning", timeout=4)

    def _why_not(self, name: str) -> str:
        session = self.session
        if name == "undo":
            return "no patch of this session is applied; 4 shows the history"
        if name in ("stop", "explain_next", "output"):
            return {"stop": "nothing runs", "explain_next": "no red verification is to be explained"}.get(
                name, "nothing has run yet"
            )
        if self.doing:
            return f"{self.doing} is on: x stops it"
        if session.report is None:
            return f"{NO_REASON}: open a log, or run a command"
        if name in ("apply", "edit_fix", "difference") and session.fix is not None and self.at in ("finding", "fix"):
            return (
                "it is applied already; u takes it back"
                if session.is_applied(session.fix)
                else why_no_edit(session.fix)
            )
        return "not on this screen: 1 is the finding, 2 its fixes, 3 the verification"

    def _is_on_applied(self) -> bool:
        from explainer.model.journal import APPLIED

        record = self._chosen_record()
        return record is not None and record.state == APPLIED

    def _chosen_record(self) -> Record | None:
        return self.pane("history").chosen if self.at == "history" else None

    # Moving.

    def action_move(self, way: str) -> None:
        """J, k, g, G."""
        self.pane(self.at).move(way)

    async def action_step(self, way: int) -> None:
        """The next or previous fix on the screen of fixes, finding elsewhere."""
        session = self.session
        if self.at == "fix" and session.choose_fix(session.at_fix + way):
            self.pane("fix").draw_fix()
        elif session.choose_finding(session.at_finding + way):
            await self.pane("finding").draw_finding()
            if self.at == "fix":
                await self.pane("fix").draw()
        self.draw_status()
        self.refresh_bindings()

    async def action_back(self) -> None:
        """Escape: out of a line that is typed, else to the finding."""
        if isinstance(self.focused, Input):
            self.pane(self.at).take_focus()
        elif self.at != "finding":
            await self.action_show("finding")

    async def action_search(self) -> None:
        """To the search of the rules."""
        await self.action_show("rules")
        self.pane("rules").search_here()

    def action_output(self) -> None:
        """Output or health."""
        self.pane("verify").turn()

    def action_difference(self) -> None:
        """Side by side, or unified."""
        told = self.pane("fix").turn()
        if told:
            self.notify(told, title="diff", timeout=3)

    async def action_fix(self) -> None:
        """The fixes of this finding; where it has none that edits, those of the next one that has."""
        finding = self.session.finding
        if finding is not None and not any(one.changes for one in finding.fixes) and self.session.choose_edit():
            self.notify(
                f"`{finding.cause}` has no edit here; this is `{self.session.finding.cause}`"
                if self.session.finding
                else ""
            )
            await self.pane("finding").draw_finding()
        await self.action_show("fix")
        if finding is None:
            self.notify("nothing is explained yet: there is no fix", severity="warning")

    # Looks.

    def action_theme(self) -> None:
        """The next theme."""
        self.theme = next_theme(self.theme)
        self.notify(self.theme, title="theme", timeout=2)

    def watch_theme(self, name: str) -> None:
        """Remember it, however it was chosen."""
        if self._is_ready:
            remember("theme", name)

    def action_help(self) -> None:
        """Every key."""
        from explainer.tui.screens.help import Help

        self.push_screen(Help())

    def action_help_quit(self) -> None:
        """Ctrl-C copies a selection, by Textual; without one it says how to leave."""
        self.notify("q quits, x stops what runs", timeout=3)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """What the palette offers: the keys in words, and Textual's own for themes and screenshots."""
        for binding in MAIN:
            key, action, title = binding.key, binding.action, binding.description  # type: ignore[union-attr]
            if self.check_action(action, ()):
                yield SystemCommand(
                    title,
                    f"key {getattr(binding, 'key_display', None) or key}",
                    lambda name=action: self.run_action(name),
                )
        yield SystemCommand("Copy the card", "the whole report as text", lambda: self.copy("card"))
        yield SystemCommand("Copy the diff", "the patch of the fix that is shown", lambda: self.copy("diff"))
        yield SystemCommand("Copy the command", "what is run", lambda: self.copy("command"))
        yield SystemCommand("Next theme", "dark, light, ansi, high contrast", self.action_theme)
        for one in super().get_system_commands(screen):
            if one.title in ("Theme", "Screenshot"):
                yield one

    def copy(self, what: str) -> None:
        """Copy to the clipboard, by the terminal (OSC 52), which works over SSH."""
        session = self.session
        texts = {
            "card": session.card(),
            "diff": (session.fix.patch or session.fix.command or "") if session.fix else "",
            "command": session.command_line,
            "page": self.pane("rules").page if self.has_shown("rules") else "",
            "record": self._record_diff(),
        }
        if not texts[what]:
            self.notify("there is nothing to copy here", severity="warning")
            return
        self.copy_to_clipboard(texts[what])
        said = {"page": "the page", "record": "the diff"}.get(what, f"the {what}")
        self.notify(f"{said} is copied, where the terminal lets it", timeout=3)

    def _record_diff(self) -> str:
        from explainer.workflow import diff_of

        record = self._chosen_record()
        return diff_of(record) if record is not None else ""

    def action_copy(self) -> None:
        """What this screen is about."""
        self.copy({"fix": "diff", "verify": "command", "rules": "page", "history": "record"}.get(self.at, "card"))

    # Undo.

    async def action_undo(self) -> None:
        """Take back the patch that is chosen in the history, else the last one that stands."""
        record = self._chosen_record() or self.session.to_undo()
        if record is None:
            self.notify("no patch is applied in this project", severity="warning")
            return
        await self.take_back(record)

    async def take_back(self, record: Record) -> bool:
        """Undo a patch and say so; a refusal goes to the history, with what stands in the way."""
        from explainer.model.journal import Refused

        done = self.session.undo(record)
        if isinstance(done, Refused):
            await self.action_show("history")
            self.pane("history").show_obstacle(done.reason, done.diff)
            self.notify(f"refused: {done.reason}", title="undo", severity="error", markup=False)
            return False
        names = ", ".join(os.path.relpath(one.file, done.root) for one in done.files)
        if self.has_shown("verify"):
            self.pane("verify").take_back(f"{names} as before {done.fix}")
        self.notify(f"{names} as before {done.fix}", title=f"undone {done.id}", markup=False)
        await self.redraw()
        return True

    async def redraw(self) -> None:
        """Draw again what shows the state of the program."""
        for name in ("fix", "history"):
            if self.has_shown(name):
                await self.pane(name).draw()
        self.draw_status()
        self.refresh_bindings()

    # Leaving.

    def action_leave(self) -> None:
        """Quit; asks while a run is on, and where an edit stands whose verification was red."""
        from explainer.tui.screens.ask import Ask

        if self.doing:
            question = prose(f"`{self.doing}` is on. End it and quit?")
            self.push_screen(
                Ask(question, "what it started is ended too", yes="End it", no="Stay"), self._answered_leave
            )
            return
        doubted = self.session.doubted
        if doubted is not None:
            question = prose(
                f"The verification of `{doubted.record.fix}` was {RED}. Take the edit back before leaving?"
            )
            self.push_screen(
                Ask(
                    question,
                    "no leaves it applied; gradfix undo takes it back later",
                    yes="Take it back",
                    no="Leave it",
                ),
                self._answered_doubt,
            )
            return
        self.exit(0)

    def _answered_leave(self, answer: bool | None) -> None:  # noqa: FBT001 - Textual's way of passing it
        if answer:
            self.leave_now()

    async def _answered_doubt(self, answer: bool | None) -> None:  # noqa: FBT001
        doubted = self.session.doubted
        if answer and doubted is not None and not await self.take_back(doubted.record):
            return
        self.exit(0)

    def explained_here(self) -> Report | None:
        """The report that is shown, for tests and screenshots."""
        return self.session.report
