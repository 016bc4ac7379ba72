"""How output is to look: colour and width, from the terminal, the environment and the options."""

from __future__ import annotations

import os
import sys
from typing import TextIO

MAX_WIDTH = 110
FALLBACK_WIDTH = 100


def is_coloured(choice: str, stream: TextIO | None = None) -> bool:
    """Whether to colour: the option first, then NO_COLOR, FORCE_COLOR, TERM=dumb, then whether it is a terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE", "0") != "0":
        return True
    return os.environ.get("TERM") != "dumb" and is_terminal(stream or sys.stdout)


def is_terminal(stream: TextIO) -> bool:
    """Whether a stream is a terminal; a closed or replaced one is not."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def width() -> int:
    """The columns to write in: COLUMNS, the terminal's, or 100 in a pipe; at most 110, for prose."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns) > 0:
        return max(min(int(columns), MAX_WIDTH), 40)
    try:
        return max(min(os.get_terminal_size(sys.stdout.fileno()).columns, MAX_WIDTH), 40)
    except (OSError, ValueError, AttributeError):
        return FALLBACK_WIDTH
