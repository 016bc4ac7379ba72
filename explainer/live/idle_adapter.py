"""Adapters of PEFT that the program adds and that no step trains: `add_adapter` leaves the one active that was so before."""

from __future__ import annotations

import sys
import weakref
from contextlib import suppress
from typing import Any

from .frame import behind
from .imports import after_import

MAX_ADAPTERS = 20


class IdleAdapters:
    """Notes each adapter that the program adds by itself; forgets one that was made active before a step, or holds an update of its own."""

    def __init__(self) -> None:
        self._added: list[_Added] = []

    def watch(self) -> None:
        """Look at what is added to each `PeftModel`."""
        after_import("peft.peft_model", lambda module: self._watch(module.PeftModel))

    def before_step(self) -> None:
        """Count the step for each adapter that is not active in it."""
        if self._added:
            with suppress(Exception):  # the names of active adapters have moved from release to release
                self._added = [one for one in self._added if one.is_idle()]

    def choose(self, model: Any, name: str) -> None:
        """The program makes an adapter the active one: what it does so for before a step, as for a reference, is its own to say."""
        for one in self._added:
            one.is_chosen = one.is_chosen or one.is_of(model, name)

    def at_the_end(self) -> list[dict[str, Any]]:
        """The adapters that were there in a step, active in none, and are as they were made."""
        found = []
        for one in self._added:
            with suppress(Exception):  # a weight may be on a device that is gone, or of a kind of its own
                found += [one.told] if one.is_untouched() else []
        return found

    def _watch(self, kind: Any) -> None:
        kind.add_adapter = behind(kind.add_adapter, self._look)

    def _look(self, arguments: tuple[Any, ...], keywords: dict[str, Any], _: Any) -> None:
        frame = sys._getframe(2)  # noqa: SLF001 - who adds it
        name, code = keywords.get("adapter_name", arguments[1] if len(arguments) > 1 else ""), frame.f_code
        if "site-packages" not in code.co_filename and len(self._added) < MAX_ADAPTERS:
            told = {"adapter": name, "file": code.co_filename, "line": frame.f_lineno, "function": code.co_name}
            self._added.append(_Added(arguments[0], told))


class _Added:
    """An adapter that was added to a model, and which one was active in the steps since."""

    def __init__(self, model: Any, told: dict[str, Any]) -> None:
        self._model = weakref.ref(model)
        self._name = str(told["adapter"])
        self._instead = ""
        self._is_frozen = False
        self.is_chosen = False
        self._place = told
        # Kept, as the model may be gone at the end; of LoRA's two factors the one that starts at zero.
        self._own = [one for name, one in model.named_parameters() if "lora_B" in name and f".{self._name}." in name]

    @property
    def told(self) -> dict[str, Any]:
        return {**self._place, "instead": self._instead, "is_frozen": self._is_frozen}

    def is_of(self, model: Any, name: str) -> bool:
        return self._model() is model and self._name == name

    def is_idle(self) -> bool:
        """Whether no step so far had it active: a model that is gone is in no step, an adapter that was deleted is not meant."""
        model = self._model()
        if model is None:
            return True
        if self.is_chosen or self._name not in model.peft_config:
            return False
        active = list(model.active_adapters)
        if self._name in active:
            return False
        # Where the one that is active was loaded frozen, what trains is a head around the model.
        if model.training or any(one.grad is not None for one in model.parameters()):
            self._instead = ", ".join(map(str, active))
            self._is_frozen = not any(one.requires_grad for name, one in model.named_parameters() if "lora_" in name)
        return True

    def is_untouched(self) -> bool:
        """Whether steps trained the model without the adapter, whose update is still nothing: weights copied into it make it a reference."""
        return bool(self._instead and self._own) and not any(bool(one.detach().any()) for one in self._own)
