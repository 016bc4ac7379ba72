"""Gives a program that sets no seed one, so that two runs of it draw the same numbers; one that sets its own is not touched."""

from __future__ import annotations

import os
import random

from .imports import after_import


def fix() -> None:
    """Seed torch, Python and numpy by the rank, now that torch is imported and nothing is drawn."""
    import torch

    rank = os.environ.get("RANK", "0")
    seed = int(rank) if rank.isdigit() else 0
    torch.manual_seed(seed)
    random.seed(seed)
    after_import("numpy.random", lambda module: module.seed(seed))
