"""Which files belong to the user's project, and where the file lies that a frame names."""

from __future__ import annotations

import os

_NOT_THE_USERS = {"site-packages", "dist-packages", "node_modules", "__pycache__", ".git", ".venv", "venv"}


def place_of(name: str, root: str) -> str | None:
    """The file under `root` that a frame's path means: as it stands, or relative to the root; None where there is none.

    A path of another machine is tried by its last parts: `/content/project/model.py` may be `model.py` here.
    """
    if not name.endswith((".py", ".ipynb")) or "\x00" in name:
        return None
    parts = name.replace("\\", "/").split("/")
    tries = [name if os.path.isabs(name) else os.path.join(root, name)]
    tries.extend(os.path.join(root, *parts[at:]) for at in range(1, len(parts)))
    for path in tries:
        real = os.path.realpath(path)
        if is_inside(real, root) and os.path.isfile(real):
            return real
    return None


def is_inside(path: str, root: str) -> bool:
    """Whether a real path lies under a real root and belongs to the project, not to an installed package."""
    if not path.startswith(root.rstrip(os.sep) + os.sep):
        return False
    return not _NOT_THE_USERS & set(os.path.relpath(path, root).split(os.sep)[:-1])
