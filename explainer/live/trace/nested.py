"""What an operation is given in lists: `stack([a, b])`, an index of several tensors."""

from __future__ import annotations

from typing import Any

MAX_LISTED = 2_000


def nested(values: list[Any] | tuple[Any, ...]) -> list[Any]:
    """What lists in lists hold, as many of them as are looked at."""
    found: list[Any] = []
    queue: list[Any] = [values]
    while queue and len(found) < MAX_LISTED:
        one = queue.pop()
        if type(one) in (list, tuple):
            queue.extend(one[:MAX_LISTED])
        else:
            found.append(one)
    return found
