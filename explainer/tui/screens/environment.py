"""The screen of the environment: interpreter, packages, GPUs, and where each was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.text import Text
from textual.widgets import Static

from explainer.errors import GradfixError
from explainer.model.environment import Environment, Gpu
from explainer.render.visible import visible
from explainer.tui.screens.pane import Pane
from explainer.tui.widgets.text import styled

if TYPE_CHECKING:
    from textual.widget import Widget
    from textual.widgets import DataTable


class EnvironmentPane(Pane):
    """A table of facts; probed in a thread when it is first shown."""

    DEFAULT_CSS = """
    EnvironmentPane DataTable { height: 1fr; background: $background; scrollbar-size-vertical: 1; }
    """
    scroller = "#facts"
    first = "#facts"

    def build(self) -> Iterable[Widget]:
        """The table."""
        from textual.widgets import DataTable

        self._is_asked = False
        yield Static("looking at the interpreter, its packages and the GPUs", id="state", classes="quiet")
        table: DataTable[Text] = DataTable(id="facts", cursor_type="row", zebra_stripes=False)
        table.add_columns("", "value", "read from")
        yield table

    async def draw(self) -> None:
        """Probe, the first time."""
        if not self._is_asked:
            self._is_asked = True
            self.run_worker(self._probe, thread=True, group="probe")

    def _probe(self) -> None:
        try:
            environment = self.session.environment()
        except GradfixError as error:
            self.app.call_from_thread(self.query_one("#state", Static).update, styled(str(error), "$text-error"))
            return
        self.app.call_from_thread(self.fill, environment)

    def fill(self, environment: Environment) -> None:
        """Show the facts."""
        from textual.widgets import DataTable

        self.query_one("#state", Static).display = False
        table = self.query_one(DataTable)
        for name, value, source in rows_of(environment):
            table.add_row(Text(visible(name), "bold"), Text(visible(value)), Text(visible(source), "dim"))


def rows_of(environment: Environment) -> Iterator[tuple[str, str, str]]:
    """Each fact: its name, its value, where it was read."""
    if environment.python is not None:
        yield "python", environment.python.value, environment.python.source
    yield from ((one.name, one.version, one.source) for one in environment.packages)
    yield from (("gpu", _described(one), one.source) for one in environment.gpus or ())
    yield from ((one.name, one.value, one.source) for one in environment.facts)
    yield from ((one.what, "not read", one.why) for one in environment.unread)


def _described(gpu: Gpu) -> str:
    abilities = {"bf16": gpu.bf16, "fp16": gpu.fp16, "tf32": gpu.tf32, "fp8": gpu.fp8}
    parts = [gpu.name]
    if gpu.memory_mib is not None:
        parts.append(f"{gpu.memory_mib / 1024:.0f} GiB")
    parts += [name if has else f"no {name}" for name, has in abilities.items() if has is not None]
    return ", ".join(parts)
