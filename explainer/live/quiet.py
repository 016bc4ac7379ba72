"""Keeps a verification from leaving traces: saves go to a scratch folder, nothing is pushed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .boot import after_import

_PUSHES = ("upload_file", "upload_folder", "upload_large_folder", "create_commit", "create_repo", "create_branch")


def silence(options: dict[str, Any]) -> None:
    """Redirect what would overwrite a file of the project: `torch.save` now, other libraries' writers once they are imported.

    A new file is let through, so that the program can read it back; who started the program takes it away afterwards.
    """
    import torch

    scratch, root = options["scratch"], os.path.join(os.path.realpath(options["root"]), "")
    moved: dict[str, str] = {}

    def elsewhere(path: Any) -> Any:
        """Where a path of the project goes that holds a file already; anything else stays."""
        full = _absolute(path)
        if full not in moved:
            if not os.path.realpath(full).startswith(root) or not os.path.exists(full):
                return path
            moved[full] = os.path.join(scratch, f"{len(moved)}-{os.path.basename(full)}")
        return moved[full]

    def read(path: Any) -> Any:
        """Where a path lies now."""
        return moved.get(_absolute(path), path)

    torch.save = _redirected(torch.save, 1, elsewhere)
    torch.load = _redirected(torch.load, 0, read)
    after_import("safetensors.torch", lambda module: _wrap(module, "save_file", 1, elsewhere))
    after_import("safetensors.torch", lambda module: _wrap(module, "load_file", 0, read))
    after_import("safetensors", lambda module: _wrap(module, "safe_open", 0, read))
    after_import("huggingface_hub.hf_api", _mute_hub)


def _absolute(path: Any) -> str:
    return os.path.abspath(os.fspath(path)) if isinstance(path, (str, os.PathLike)) else ""


def _redirected(function: Callable[..., Any], position: int, where: Callable[[Any], Any]) -> Callable[..., Any]:
    """`function` with its path argument, at `position` or named `f` or `filename`, passed through `where`."""

    def moved(*arguments: Any, **keywords: Any) -> Any:
        given = list(arguments)
        if len(given) > position:
            given[position] = where(given[position])
        for name in ("f", "filename"):
            if name in keywords:
                keywords[name] = where(keywords[name])
        return function(*given, **keywords)

    moved.__doc__ = function.__doc__
    return moved


def _wrap(module: Any, name: str, position: int, where: Callable[[Any], Any]) -> None:
    setattr(module, name, _redirected(getattr(module, name), position, where))


def _mute_hub(module: Any) -> None:
    """Uploads return at once."""

    def nothing(*_: Any, **__: Any) -> None:
        return None

    for name in _PUSHES:
        if hasattr(module.HfApi, name):
            setattr(module.HfApi, name, nothing)
