"""The screen of the rule base: browse and search, typos allowed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from explainer.tui.screens.pane import Pane
from explainer.tui.widgets.text import styled

if TYPE_CHECKING:
    from textual.widget import Widget
    from textual.widgets import Markdown

MAX_HITS = 40
PATIENCE = 0.12


class RulesPane(Pane):
    """A line to search in, the causes, and the page of one."""

    DEFAULT_CSS = """
    RulesPane #words { border: none; height: 1; padding: 0; background: $surface; }
    RulesPane #both { height: 1fr; layout: vertical; margin-top: 1; }
    RulesPane #found { height: 7; max-height: 7; }
    RulesPane #page { height: 1fr; border-top: solid $border-blurred; }
    RulesPane.-wide #both { layout: horizontal; }
    RulesPane.-wide #found { width: 46; height: 1fr; max-height: 100%; }
    RulesPane.-wide #page { border-top: none; border-left: solid $border-blurred; }
    RulesPane MarkdownH1 { margin: 0 0 1 0; content-align: left middle; color: $text-accent; }
    RulesPane MarkdownH2 { margin: 1 0 0 0; color: $text-primary; text-style: bold; }
    RulesPane Markdown { padding: 0 1; background: $background; }
    """
    scroller = "#page"
    first = "#found"

    def build(self) -> Iterable[Widget]:
        """Search, list, page; what reads Markdown is loaded here, where it is first needed."""
        from textual.widgets import Markdown

        self._ids: list[str] = []
        self._page = ""
        self._timer: Timer | None = None
        yield Input(
            placeholder="search: a message, an operation, a library, a symptom; typos are fine",
            id="words",
            compact=True,
        )
        yield Horizontal(
            OptionList(id="found", compact=True), VerticalScroll(Markdown(id="text"), id="page"), id="both"
        )

    async def draw(self) -> None:
        """Every cause, the first time; what was found stays."""
        self.set_class(self.is_wide, "-wide")
        if not self._ids:
            self.list(self.session.catalog.cause_ids)

    def list(self, ids: Iterable[str], *, wanted: str | None = None) -> None:
        """Show these causes, the wanted one chosen."""
        self._ids = list(ids)
        found = self.query_one("#found", OptionList)
        found.clear_options()
        found.add_options(Option(self._row(one)) for one in self._ids)
        if self._ids:
            found.highlighted = self._ids.index(wanted) if wanted in self._ids else 0
        else:
            self._text.update("nothing found; try other words")

    @property
    def _text(self) -> Markdown:
        from textual.widgets import Markdown

        return self.query_one("#text", Markdown)

    def search_here(self) -> None:
        """To the line to search in."""
        self.query_one(Input).focus()

    @property
    def chosen(self) -> str | None:
        """The id of the cause that the cursor is on."""
        at = self.query_one("#found", OptionList).highlighted if self.is_built else None
        return self._ids[at] if at is not None and at < len(self._ids) else None

    @property
    def page(self) -> str:
        """The page that is shown, as Markdown."""
        return self._page

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search once it was typed for a moment, in a thread; a newer search replaces an older one."""
        event.stop()
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(PATIENCE, lambda: self._begin_search(event.value))

    def _begin_search(self, words: str) -> None:
        self.run_worker(lambda: self._search(words), thread=True, exclusive=True, group="search")

    def _search(self, words: str) -> None:
        from textual.worker import get_current_worker

        from explainer.catalog.search import search

        worker = get_current_worker()
        catalog = self.session.catalog
        ids = (
            [hit.cause for hit in search(catalog, words, MAX_HITS, self.session.options.knowledge)]
            if words.strip()
            else catalog.cause_ids
        )
        if not worker.is_cancelled:
            self.app.call_from_thread(self.list, ids)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes to the list."""
        event.stop()
        self.query_one("#found").focus()

    async def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """The cursor chooses the page."""
        event.stop()
        from explainer.catalog.prose import page_of

        name = self.chosen
        if name is None:
            return
        self._page = page_of(self.session.catalog.cause(name), self.session.options.knowledge)
        await self._text.update(_with_language(self._page))
        self.query_one("#page", VerticalScroll).scroll_home(animate=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter goes to the page."""
        event.stop()
        self.query_one("#page").focus()

    def on_resize(self) -> None:
        """List beside the page where there is room."""
        self.set_class(self.is_wide, "-wide")

    def _row(self, name: str) -> Content:
        family, _, slug = name.partition("/")
        return Content.assemble(styled(f"{family}/", "$quiet"), styled(slug))


def _with_language(page: str) -> str:
    """The page with its bare code blocks marked as Python: a highlighter that has to guess loads every language it knows."""
    parts = page.split("\n```")
    return "\n```".join(f"python{part}" if at % 2 and part.startswith("\n") else part for at, part in enumerate(parts))
