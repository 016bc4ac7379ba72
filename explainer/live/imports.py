"""Calls back once a module is imported: nothing is imported that the program does not ask for."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


def after_import(name: str, then: Callable[[ModuleType], None]) -> None:
    """Call back with a module, now or once it is imported.

    A library that imports torch, as `transformers.trainer` does, is no more than begun while torch is: it has none of its names.
    """
    module = sys.modules.get(name)
    if module is None:
        sys.meta_path.insert(0, AfterImport(name, lambda: then(sys.modules[name])))
    elif not _Begun.wait_for(module, lambda: after_import(name, then)):
        then(module)


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
            _tell(self._then)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


class _Begun(importlib.machinery.ModuleSpec):
    """The spec of a module that is being imported, which calls back once that has ended, well or not.

    Python says so by an attribute of the spec, `_initializing`; no finder and no loader is asked by then.
    """

    waiting: list[Callable[[], None]]

    @classmethod
    def wait_for(cls, module: ModuleType, then: Callable[[], None]) -> bool:
        """Whether a module is being imported, and calls back at the end of that."""
        spec: Any = getattr(module, "__spec__", None)
        if type(spec) not in (cls, importlib.machinery.ModuleSpec) or not getattr(spec, "_initializing", False):
            return False
        if type(spec) is not cls:
            spec.waiting, spec.__class__ = [], cls
        spec.waiting.append(then)
        return True

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "_initializing" and not value:
            waiting, self.__class__ = self.waiting, importlib.machinery.ModuleSpec  # type: ignore[assignment]
            del self.waiting
            for then in waiting:
                _tell(then)


def _tell(then: Callable[[], None]) -> None:
    try:
        then()
    except Exception:  # the program must run, also where torch is one that we do not know
        if os.environ.get("GRADFIX_DEBUG"):
            raise
