"""The dialogs: a question with two answers, and a line to be typed."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

_CSS = """
    {name} {{ align: center middle; }}
    {name} > Vertical {{
        width: 70; max-width: 94%; height: auto; max-height: 90%; padding: 1 2;
        background: $panel; border: round $border;
    }}
    {name} Horizontal {{ height: auto; margin-top: 1; align-horizontal: right; }}
    {name} Button {{ margin-left: 2; }}
    {name} .more {{ color: $quiet; margin-top: 1; }}
    {name} Input {{ margin-top: 1; border: tall $border; }}
"""


class Ask(ModalScreen[bool]):
    """A question: y or n, enter for the answer that has the focus, escape for no."""

    DEFAULT_CSS = _CSS.format(name="Ask")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
        Binding("left,right,h,l", "other", "Other answer", show=False),
    ]

    def __init__(self, question: Content, more: str = "", *, yes: str = "Yes", no: str = "No") -> None:
        super().__init__()
        self._question = question
        self._more = more
        self._yes = yes
        self._no = no

    def compose(self) -> ComposeResult:
        """The question, and two buttons."""
        with Vertical():
            yield Static(self._question)
            if self._more:
                yield Static(self._more, classes="more", markup=False)
            with Horizontal():
                yield Button(f"{self._yes} (y)", id="yes", variant="primary", compact=True)
                yield Button(f"{self._no} (n)", id="no", compact=True)

    def on_mount(self) -> None:
        """What does less has the focus: enter alone changes nothing."""
        self.query_one("#no", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """A click answers."""
        self.dismiss(event.button.id == "yes")

    def action_answer(self, answer: bool) -> None:  # noqa: FBT001 - Textual's way of passing it
        """A key answers."""
        self.dismiss(answer)

    def action_other(self) -> None:
        """To the other button."""
        self.focus_next()


class Prompt(ModalScreen[str]):
    """A line to be typed; "" where it is given up."""

    DEFAULT_CSS = _CSS.format(name="Prompt")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "Cancel")]

    def __init__(self, question: Content, value: str, more: str = "") -> None:
        super().__init__()
        self._question = question
        self._value = value
        self._more = more

    def compose(self) -> ComposeResult:
        """The question and the line."""
        with Vertical():
            yield Static(self._question)
            yield Input(value=self._value, placeholder="python train.py", select_on_focus=False)
            yield Static(self._more or "enter runs it, escape gives up", classes="more", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter takes the line."""
        self.dismiss(event.value.strip())

    def action_give_up(self) -> None:
        """Escape takes none."""
        self.dismiss("")
