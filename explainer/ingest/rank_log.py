"""Logs of which each holds one rank: `rank3.log`, `train_rank-3.err`, torchrun's `attempt_0/3/stderr.log`."""

from __future__ import annotations

import re
from functools import cache


@cache
def _named() -> re.Pattern[str]:
    return re.compile(
        r"(?:^|[^A-Za-z])(?:local_?)?(?:rank|proc|task|worker)[-_. ]?(?P<name>\d{1,6})(?!\d)[^/]*$"
        r"|/attempt_\d+/(?P<folder>\d{1,6})/std(?:err|out)\.log$",
        re.IGNORECASE,
    )


def rank_of_path(path: str) -> int | None:
    """The rank that the name of a log says, or None."""
    posix = path.replace("\\", "/")
    folder, _, name = posix.rpartition("/")
    found = _named().search(name) or _named().search(f"{folder}/{name}")
    if found is None:
        return None
    return int(found["name"] or found["folder"])
