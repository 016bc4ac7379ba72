"""The keys, and what `?` says of them. Documentation and tests rely on them."""

from __future__ import annotations

from textual.binding import Binding, BindingType

TABS = ("finding", "fix", "verify", "history", "rules", "environment")
TITLES = ("Finding", "Fix", "Verify", "History", "Rules", "Environment")

MAIN: list[BindingType] = [
    Binding("f", "fix", "Fix"),
    Binding("a", "apply", "Apply"),
    Binding("E", "edit_fix", "Edit", key_display="E"),
    Binding("d", "difference", "Split"),
    Binding("v", "verify", "Verify"),
    Binding("x", "stop", "Stop"),
    Binding("n", "explain_next", "Explain"),
    Binding("o", "output", "Output"),
    Binding("u", "undo", "Undo"),
    Binding("t", "trace", "Trace"),
    Binding("e", "editor", "Editor"),
    Binding("c", "copy", "Copy"),
    Binding("slash", "search", "Search", key_display="/"),
    Binding("question_mark", "help", "Help", key_display="?"),
    Binding("q", "leave", "Quit"),
]
QUIET: list[BindingType] = [
    *(
        Binding(str(at), f"show('{name}')", title, show=False)
        for at, (name, title) in enumerate(zip(TABS, TITLES, strict=True), 1)
    ),
    Binding("right_square_bracket", "step(1)", "Next", show=False),
    Binding("left_square_bracket", "step(-1)", "Previous", show=False),
    Binding("right_parenthesis", "failure(1)", "Later failure", show=False),
    Binding("left_parenthesis", "failure(-1)", "Earlier failure", show=False),
    Binding("j", "move('down')", "Down", show=False),
    Binding("k", "move('up')", "Up", show=False),
    Binding("g", "move('home')", "Top", show=False),
    Binding("G", "move('end')", "Bottom", show=False),
    Binding("escape", "back", "Back", show=False),
    Binding("ctrl+t", "theme", "Theme", show=False),
    Binding("ctrl+q", "leave", "Quit", show=False, priority=True),
]

HELP: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Repair",
        (
            ("f", "the fixes of this finding"),
            ("a", "apply the fix that is shown; asks for an unsafe one"),
            ("E", "change the fix before it is applied"),
            ("v", "verify: run the program for a few steps, watched"),
            ("u", "undo: take the last edit back, byte for byte"),
            ("t", "trace: run it again, each operation watched"),
            ("n", "after a red verification: explain what failed now"),
            ("x", "stop what runs"),
        ),
    ),
    (
        "Look",
        (
            ("1 … 6", "Finding, Fix, Verify, History, Rules, Environment"),
            ("[ ]", "previous and next finding, or fix"),
            ("( )", "earlier and later failure of the log"),
            ("j k g G", "down, up, top, bottom; arrows and page keys too"),
            ("tab", "to the next part of the screen"),
            ("d", "diff side by side or in one"),
            ("o", "output of the program, or health by module"),
            ("/", "search the rules; typos are fine"),
        ),
    ),
    (
        "Take along",
        (
            ("e", "open the line in $VISUAL or $EDITOR"),
            ("c", "copy: the card, the diff, the command"),
            ("ctrl+t", "next theme: dark, light, ansi, high contrast"),
            ("ctrl+p", "all commands"),
            ("?", "this page"),
            ("q", "quit; asks while a run is on"),
        ),
    ),
)
