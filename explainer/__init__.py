"""From a failed PyTorch training run to its root cause and a verified fix.

The public names live here, loaded on first use: importing this package costs almost nothing. Users import them from
`gradfix`, which re-exports them.
"""

from __future__ import annotations

__all__ = ["GradfixError", "Report", "explain", "install", "trace"]
__version__ = "0.1.0"

_HOMES = {
    "GradfixError": "explainer.errors",
    "Report": "explainer.model.report",
    "explain": "explainer.workflow",
    "install": "explainer.integrations.excepthook",
    "trace": "explainer.integrations.tracing",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
