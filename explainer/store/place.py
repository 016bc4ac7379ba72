"""Where the state of gradfix lies: a folder of the user's own, one folder in it for each project."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator


def state_folder() -> str:
    """`GRADFIX_STATE_DIR`, or the folder that this system has for state."""
    given = os.environ.get("GRADFIX_STATE_DIR")
    if given:
        return os.path.abspath(given)
    if sys.platform == "linux":  # as platformdirs has it, whose import would cost `explain` more than its memory may
        home = os.environ.get("XDG_STATE_HOME", "").strip() or os.path.expanduser("~/.local/state")
        return os.path.join(home, "gradfix")
    from platformdirs import user_state_dir

    return user_state_dir("gradfix", appauthor=False)


def journal_folder(root: str) -> str:
    """Where the journal of the project at `root`, a real path, lies; it need not be there."""
    import hashlib

    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:20]
    return os.path.join(state_folder(), "journal", name)


def journal_folders() -> Iterator[str]:
    """The folders of every journal."""
    above = os.path.join(state_folder(), "journal")
    try:
        names = sorted(os.listdir(above))
    except OSError:
        return
    yield from (os.path.join(above, name) for name in names)


def make_folder(folder: str) -> None:
    """Make a folder that only the user may enter: it holds source code."""
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    os.makedirs(folder, mode=0o700, exist_ok=True)
