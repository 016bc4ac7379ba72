"""Calls back once a module is imported: nothing is imported that the program does not ask for."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType


def after_import(name: str, then: Callable[[ModuleType], None]) -> None:
    """Call back with a module, now or once it is imported."""
    if name in sys.modules:
        then(sys.modules[name])
    else:
        sys.meta_path.insert(0, AfterImport(name, lambda: then(sys.modules[name])))


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls back once a module was imported; finds nothing itself."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name = name
        self._then = then
        self._is_asking = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module's own spec, with a loader that calls back afterwards.

        A library that only asks whether the module is there gets such a spec too and never executes it, so the finder stays
        until one was executed.
        """
        if fullname != self._name or self._is_asking:
            return None
        self._is_asking = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._is_asking = False
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if self not in sys.meta_path:
                return  # an import that failed and was tried again
            sys.meta_path.remove(self)
            try:
                self._then()
            except Exception:  # the program must run, also where torch is one that we do not know
                if os.environ.get("GRADFIX_DEBUG"):
                    raise

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
