"""Starts in a Python process: reads what is asked for, and waits for the program to import torch."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

VARIABLE = "GRADFIX_LIVE"


def start() -> None:
    """Arm the recorder, and the rest once torch is imported."""
    options: dict[str, Any] = json.loads(os.environ[VARIABLE])
    from . import record

    recorder = record.Recorder(options)
    recorder.install()
    if "torch" in sys.modules:
        arm(recorder, options)
    else:
        sys.meta_path.insert(0, AfterImport("torch", lambda: arm(recorder, options)))


def arm(recorder: Any, options: dict[str, Any]) -> None:
    """Put the hooks into torch that the mode asks for."""
    from . import raised, step

    raised.watch(recorder)
    after_import(
        "torch.distributed",
        lambda module: recorder.collectives.watch(module, recorder.watch_group, recorder.know_rank),
    )
    if options.get("seed"):
        from . import seed

        seed.fix()
    if options["mode"] == "trace":
        from .trace import arm as tracing

        recorder.tracer, _ = tracing.arm(sys.modules["torch"])
        recorder.at_end.append(lambda: recorder.parts.update(traced=recorder.tracer.explain(None, "")))
    step.watch(recorder, options)
    if options.get("twin"):
        from . import twin

        twin.become_twin()
    if options.get("exact"):
        after_import("torch._inductor.config", lambda module: setattr(module, "fallback_random", True))
    if options.get("quiet"):
        from . import quiet

        quiet.silence(options)


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
