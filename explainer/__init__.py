"""From a failed PyTorch training run to its root cause and a verified fix.

The public names live here, loaded on first use: importing this package costs almost nothing. Users import them from
`gradfix`, which re-exports them.
"""

from __future__ import annotations

__all__ = [
    "GradfixError",
    "Report",
    "SilentFailure",
    "explain",
    "install",
    "trace",
    "watch",
]
__version__ = "0.1.0"

_HOMES = {
    "GradfixCallback": "explainer.integrations.trainer",
    "GradfixError": "explainer.errors",
    "LightningCallback": "explainer.integrations.lightning",
    "Report": "explainer.model.report",
    "SilentFailure": "explainer.errors",
    "explain": "explainer.workflow",
    "install": "explainer.integrations.excepthook",
    "trace": "explainer.integrations.tracing",
    "watch": "explainer.integrations.watching",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
