"""gradfix: from a failed PyTorch training run to its root cause.

    from gradfix import explain
    try:
        loss.backward()
    except RuntimeError as error:
        print(explain(error).findings[0].title)

This package is the import name of the product; the code lives in `explainer`, and is loaded when a name is first used.
"""

from __future__ import annotations

__all__ = [
    "GradfixError",
    "Report",
    "SilentFailure",
    "__version__",
    "explain",
    "install",
    "trace",
    "watch",
]
# Made of a class of another library: not part of `import *`, which must work without it.
CALLBACKS = ("GradfixCallback", "LightningCallback")


def find_explainer() -> object:
    """The package `explainer` of this installation.

    Raises:
        ImportError: another module of that name stands before it on the path, as a user's own `explainer.py` does.
    """
    import explainer

    if not hasattr(explainer, "_HOMES"):
        place = getattr(explainer, "__file__", None) or "a folder without __init__.py"
        raise ImportError(
            f"gradfix cannot start: {place} hides gradfix's own package `explainer`; rename that file or folder, or"
            " remove its folder from PYTHONPATH"
        )
    return explainer


def __getattr__(name: str) -> object:
    if name not in __all__ and name not in CALLBACKS:
        raise AttributeError(f"module 'gradfix' has no attribute {name!r}")
    return getattr(find_explainer(), name)


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: object) -> None:
    """What `%load_ext gradfix` calls: failed cells are explained below their traceback, `%gradfix` goes on from there."""
    find_explainer()
    from explainer.integrations.notebook.extension import load

    load(shell)


def unload_ipython_extension(shell: object) -> None:
    """What `%unload_ext gradfix` calls."""
    find_explainer()
    from explainer.integrations.notebook.extension import unload

    unload(shell)
