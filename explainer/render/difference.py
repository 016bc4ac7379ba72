"""A unified diff for a terminal: coloured, every line whole, control characters shown; raw for `patch` in a pipe."""

from __future__ import annotations

from explainer.render.visible import visible

_ADDED, _REMOVED, _HEAD, _HUNK = "32", "31", "1", "36"


def render_diff(diff: str, *, is_terminal: bool, is_coloured: bool) -> str:
    """A unified diff as it is to be printed, with a final line feed."""
    lines = diff.split("\n")[:-1]
    if is_terminal:
        lines = [visible(line.removesuffix("\r")) for line in lines]
    if is_coloured:
        lines = [_tinted(line) for line in lines]
    return "".join(f"{line}\n" for line in lines)


def _tinted(line: str) -> str:
    code = _HEAD if line.startswith(("--- ", "+++ ")) else ""
    code = code or {"+": _ADDED, "-": _REMOVED, "@": _HUNK}.get(line[:1], "")
    return f"\x1b[{code}m{line}\x1b[0m" if code else line
