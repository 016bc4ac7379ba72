"""The source line that a frame names, where the file lies on this machine."""

from __future__ import annotations

import os
import stat

MAX_SOURCE = 4 << 20


def read_line(file: str, line: int, root: str) -> str | None:
    """Line `line` (from 1) of a `.py` file, stripped; None where it cannot be read.

    `file` is taken as it stands, or relative to `root`. Only regular files of at most 4 MiB are opened.
    """
    if not file.endswith(".py") or line < 1:
        return None
    path = file if os.path.isabs(file) else os.path.join(root, file)
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_SOURCE:
            return None
        with open(path, encoding="utf-8", errors="replace") as source:
            for number, text in enumerate(source, start=1):
                if number == line:
                    return text.strip() or None
    except (OSError, ValueError):  # ValueError: a damaged log can name a path with a null byte
        return None
    return None
