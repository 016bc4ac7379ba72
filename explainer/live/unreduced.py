"""The parameters by name of which DistributedDataParallel says by their numbers that they got no gradient.

Lightning puts a text of its own in the place of the numbers; its last step has left gradients with the others by then.
"""

from __future__ import annotations

import re
from contextlib import suppress
from types import FrameType
from typing import Any

_NUMBERS = re.compile(r"did not receive grad for rank \d+: (\d[\d ]*)")
_LIGHTNING = "parameters that were not used in producing the loss returned by training_step"
_WRAPPER = "torch/nn/parallel/distributed.py"


def unreduced(frames: list[FrameType], message: str) -> str | None:
    """Their names in the wrapped module, `head.weight head.bias`; None for other messages."""
    told = _NUMBERS.search(message)
    frame = _wrapper(frames, message)
    if frame is None:
        return None
    with suppress(Exception):  # a subclass may hold anything
        counted = _counted(frame.f_locals["self"])
        if told is not None:
            return " ".join(counted[int(one)][0] for one in told[1].split())
        without = [name for name, one in counted if one.grad is None]
        return " ".join(without) if len(without) < len(counted) else None
    return None


def frozen_since(frames: list[FrameType], message: str) -> str | None:
    """Those of them that have been frozen since the module was wrapped; None where none has, or for other messages."""
    frame = _wrapper(frames, message)
    if frame is None:
        return None
    with suppress(Exception):
        return " ".join(name for name, one in _counted(frame.f_locals["self"]) if not one.requires_grad) or None
    return None


def _counted(wrapper: Any) -> list[tuple[str, Any]]:
    """The parameters as the reducer numbers them: those that required grad when the module was wrapped.

    Which these were is known by how many there are: all that do now, or all that there are.
    """
    left = getattr(wrapper, "parameters_to_ignore", ())
    every = [(name, one) for name, one in wrapper.module.named_parameters() if name not in left]
    trained = [(name, one) for name, one in every if one.requires_grad]
    count = wrapper._get_ddp_logging_data().get("num_parameter_tensors")  # noqa: SLF001 - what torch logs of the reducer
    return every if count == len(every) != len(trained) else trained


def _wrapper(frames: list[FrameType], message: str) -> FrameType | None:
    """The frame of the wrapper that raised, where a message speaks of what got no gradient."""
    is_meant = _NUMBERS.search(message) or _LIGHTNING in message
    return next((one for one in reversed(frames) if _is_wrapper(one)), None) if is_meant else None


def _is_wrapper(frame: FrameType) -> bool:
    return frame.f_code.co_filename.replace("\\", "/").endswith(_WRAPPER)
