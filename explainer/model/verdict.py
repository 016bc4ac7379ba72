"""How a verification ends."""

from __future__ import annotations

GREEN, RED, INCONCLUSIVE = "green", "red", "inconclusive"
