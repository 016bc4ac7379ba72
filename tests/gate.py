"""Which cases of a table run always: where each starts a program of its own, a few stand for their kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest


def some_at_gate(cases: Mapping[str, Any], always: Iterable[str]) -> list[Any]:
    """The cases as parameters: those named `always` run always, the others with `-m slow`.

    Raises:
        KeyError: there is no such case.
    """
    kept = {name: cases[name] for name in always}
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), id=name, marks=() if name in kept else pytest.mark.slow)
        for name, value in cases.items()
    ]  # fmt: skip
