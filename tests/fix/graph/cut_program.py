"""One program whose loss has lost its graph, with what its author would change."""

from __future__ import annotations

from typing import NamedTuple


class Broken(NamedTuple):
    """Files of a program, the cause, words of the guilty line, and what the author changes: old and new text by file."""

    files: dict[str, str]
    cause: str
    guilty: str
    cure: dict[str, tuple[tuple[str, str], ...]]


HEAD = """import torch
from torch import nn
import torch.nn.functional as F
"""
TAIL = """
grads = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
"""
