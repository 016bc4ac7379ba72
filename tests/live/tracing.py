"""Steps of a program, traced in this process."""

from __future__ import annotations

from collections.abc import Callable

import torch

import gradfix
from explainer.model.trace import READ, TracedLine


def lines(step: Callable[[], object], *, fails: bool = True) -> tuple[TracedLine, ...]:
    """What tracing a step shows; the exception of a step that fails comes through."""
    seen = None
    try:
        with gradfix.trace() as seen:
            step()
    except RuntimeError:
        assert fails
    else:
        assert not fails
    assert seen is not None
    return tuple(one for one in seen.lines if one.kind != READ)


def shown(found: tuple[TracedLine, ...]) -> list[tuple[str, str, str]]:
    """Kind, operation and function of each line; the functions here hold one guilty line each."""
    return [(one.kind, one.operation, one.function or "") for one in found]


def weight(*shape: int) -> torch.Tensor:
    return torch.ones(*shape or (3,), requires_grad=True)
