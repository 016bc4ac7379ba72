"""Adapters of PEFT that an optimizer was given and that another one has replaced by the time of each step: no step trains them.

`set_adapter("reference")` switches `requires_grad` of all other adapters off, also of one whose output a backward still goes through:
autograd drops the gradient of a leaf that does not require one by then (run on torch 2.13, peft 0.21).
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .frame import behind
from .imports import after_import

MAX_MODELS = 20


class SwitchedAdapters:
    """Notes which adapter a program has made the active one, tells `choose` of it, and what the optimizers own of the others."""

    def __init__(self, choose: Callable[[Any, str], None]) -> None:
        self._models: list[_Switched] = []
        self._choose = choose

    def watch(self) -> None:
        """Look at each switch of a `PeftModel`, and of a model of transformers that has adapters."""
        after_import("peft.peft_model", lambda module: self._watch(module.PeftModel))
        after_import("transformers.integrations.peft", lambda module: self._watch(module.PeftAdapterMixin))

    def before_step(self, optimizer: Any) -> None:
        """Whether what an optimizer owns of an adapter trains in this step."""
        if self._models:
            with suppress(Exception):  # how adapters are named has moved from release to release
                owned = {id(one) for group in optimizer.param_groups for one in group["params"]}
                for one in self._models:
                    one.before_step(owned)

    def at_the_end(self) -> list[dict[str, Any]]:
        """The adapters that were in steps and had a gradient in none, each with the line that replaced it."""
        return [told for one in self._models for told in one.told()]

    def _watch(self, kind: Any) -> None:
        kind.set_adapter = behind(kind.set_adapter, self._look)

    def _look(self, arguments: tuple[Any, ...], keywords: dict[str, Any], _: Any) -> None:
        frame = sys._getframe(2)  # noqa: SLF001 - who switches
        name = keywords.get("adapter_name", arguments[1] if len(arguments) > 1 else "")
        known = next((one for one in self._models if one.is_of(arguments[0])), None)
        if known is None and len(self._models) < MAX_MODELS:
            known = _Switched(arguments[0])
            self._models.append(known)
        if known is not None and isinstance(name, str):
            is_own = "site-packages" not in frame.f_code.co_filename
            known.switch(name, frame.f_code, frame.f_lineno, is_own=is_own)
            if is_own:
                self._choose(arguments[0], name)


class _Switched:
    """A model whose adapters are switched: the active one, who made it that, and which adapters no step has trained so far."""

    def __init__(self, model: Any) -> None:
        self._model = weakref.ref(model)
        self._active = ""
        self._place: dict[str, Any] | None = None
        self._idle: dict[str, dict[str, Any]] = {}
        self._trained: set[str] = set()

    def is_of(self, model: Any) -> bool:
        return self._model() is model

    def switch(self, name: str, code: Any, line: int, *, is_own: bool) -> None:
        """Another adapter is the active one; where a library switches, no line of the program did."""
        self._active = name
        self._place = {"file": code.co_filename, "line": line, "function": code.co_name} if is_own else None

    def before_step(self, owned: set[int]) -> None:
        """Count the step for each other adapter that is the optimizer's alone; one that trains is no matter any more."""
        model = self._model()
        if model is None or len(self._trained) >= len(model.peft_config):
            return
        parts = self._parts(model)
        is_meant = any(one.grad is not None and id(one) in owned for one in parts.get(self._active, ()))
        for name, own in parts.items():
            mine = [one for one in own if id(one) in owned]
            if not mine or name in self._trained:
                continue
            if any(one.requires_grad or one.grad is not None for one in mine):
                self._trained.add(name)
                self._idle.pop(name, None)
            elif self._place is not None and name != self._active and not is_meant:
                self._idle[name] = {"adapter": name, "instead": self._active, **self._place}

    def told(self) -> list[dict[str, Any]]:
        return list(self._idle.values())

    def _parts(self, model: Any) -> dict[str, list[Any]]:
        """The parameters of the active adapter and of each that no step has trained, by name."""
        wanted = [name for name in model.peft_config if name not in self._trained or name == self._active]
        found: dict[str, list[Any]] = {name: [] for name in wanted}
        for path, one in model.named_parameters():
            for name in wanted:
                if f".{name}." in path or path.endswith(f".{name}"):
                    found[name].append(one)
        return found
