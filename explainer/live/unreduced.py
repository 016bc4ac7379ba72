"""The parameters by name of which DistributedDataParallel says by their numbers that they got no gradient."""

from __future__ import annotations

import re
from contextlib import suppress
from types import FrameType

_NUMBERS = re.compile(r"did not receive grad for rank \d+: (\d[\d ]*)")
_WRAPPER = "torch/nn/parallel/distributed.py"


def unreduced(frames: list[FrameType], message: str) -> str | None:
    """Their names in the wrapped module, `head.weight head.bias`; None for other messages."""
    told = _NUMBERS.search(message)
    frame = next((one for one in reversed(frames) if _is_wrapper(one)), None) if told else None
    if told is None or frame is None:
        return None
    with suppress(Exception):  # a subclass may hold anything
        wrapper = frame.f_locals["self"]
        left = getattr(wrapper, "parameters_to_ignore", ())
        names = [name for name, one in wrapper.module.named_parameters() if one.requires_grad and name not in left]
        return " ".join(names[int(one)] for one in told[1].split())
    return None


def _is_wrapper(frame: FrameType) -> bool:
    return frame.f_code.co_filename.replace("\\", "/").endswith(_WRAPPER)
