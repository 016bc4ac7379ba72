"""What a trace that saw no fault can still say: where values leave the graph on the way to the loss."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterator, Sequence

from explainer.model.verification import ProcessReport

MAX_CODE = 100
# A line that calls a library, which cuts within, is not where to look.
_OWN = re.compile(r"detach|\.data\b|\.item\(|\.tolist\(|numpy|\bnp\.|float\(|no_grad|inference_mode|set_grad_enabled")
_MEANT = "on the way to the loss values leave the graph here, where gradients end; that may be meant"


def departures_told(processes: Sequence[ProcessReport], root: str) -> Iterator[str]:
    """Lines that say that nothing wrong was seen, and where gradients end; none where no tracer saw a backward and the end.

    Each place with its code, once for all processes; paths are relative to the root.
    """
    if all(one.traced.get("departures") is None for one in processes):
        return
    found = {}
    for one in processes:
        for told in one.traced.get("departures") or ():
            place = told["off"] or told
            code = linecache.getline(place["file"] or "", place["line"] or 0).strip()
            if _OWN.search(code):
                path = os.path.relpath(place["file"], root)
                found[place["file"], place["line"]] = f"  {path}:{place['line']}  {code[:MAX_CODE]}"
    yield "nothing was seen that trains otherwise than the loss says"
    yield from [_MEANT, *found.values()] if found else ["no value leaves the graph on the way to the loss"]
