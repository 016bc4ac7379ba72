"""Keeps a verification from leaving traces: saves go to a scratch folder, nothing is pushed.

What a program saves where nothing was before, in the project or under the folder for temporary files, stays there, so that
the program finds it again by whatever means; what is new in the project is taken away afterwards.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

from .imports import after_import

_PUSHES = ("upload_file", "upload_folder", "upload_large_folder", "create_commit", "create_repo", "create_branch")


def silence(options: dict[str, Any]) -> None:
    """Redirect `torch.save` now, and other libraries' writers once they are imported."""
    import torch

    places = _Places(options["scratch"], options["guarded"])
    torch.save = _redirected(torch.save, 1, places.to_write)
    torch.load = _redirected(torch.load, 0, places.to_read)
    after_import("safetensors", lambda module: _wrap(module, "safe_open", 0, places.to_read))
    after_import("safetensors.torch", lambda module: _wrap(module, "load_file", 0, places.to_read))
    after_import("safetensors.torch", lambda module: _wrap(module, "save_file", 1, places.to_write))
    after_import("huggingface_hub.hf_api", _mute_hub)


class _Places:
    """Where the files that a program saves go, and are read from again."""

    def __init__(self, scratch: str, guarded: str) -> None:
        self._scratch = scratch
        self._free = [os.path.join(os.path.realpath(one), "") for one in (guarded, tempfile.gettempdir()) if one]
        self._moved: dict[str, str] = {}
        self._own: set[str] = set()

    def to_write(self, path: Any) -> Any:
        """The path itself where nothing of the user's is overwritten or left behind, else one in the scratch folder."""
        if not isinstance(path, (str, os.PathLike)):
            return path
        full = os.path.realpath(os.fspath(path))
        if full in self._own or self._is_free(full):
            self._own.add(full)
            return path
        if full not in self._moved:
            self._moved[full] = os.path.join(self._scratch, f"{len(self._moved)}-{os.path.basename(full)}")
        return self._moved[full]

    def to_read(self, path: Any) -> Any:
        """Where a path was written to; the path itself where this program has not written it."""
        return (
            self._moved.get(os.path.realpath(os.fspath(path)), path) if isinstance(path, (str, os.PathLike)) else path
        )

    def _is_free(self, full: str) -> bool:
        """Whether nothing is there, in a folder where what is new does no harm."""
        return not os.path.exists(full) and any(full.startswith(one) for one in self._free)


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
