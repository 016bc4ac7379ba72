"""Adapters of PEFT that are loaded for inference, and whose weights an optimizer is given all the same: no step trains them."""

from __future__ import annotations

import sys
import weakref
from contextlib import suppress
from typing import Any

from .frame import behind
from .imports import after_import

MAX_ADAPTERS = 20
_NAME_PLACE, _FLAG_PLACE = 3, 4  # of `from_pretrained(cls, model, model_id, adapter_name, is_trainable)`


class FrozenAdapters:
    """Notes each adapter that `PeftModel.from_pretrained` leaves frozen; forgets one whose weights require grad in a step."""

    def __init__(self) -> None:
        self._loaded: list[_Loaded] = []

    def watch(self) -> None:
        """Look at what is loaded into each `PeftModel`."""
        after_import("peft.peft_model", lambda module: self._watch(module.PeftModel))

    def before_step(self, optimizer: Any) -> None:
        """Whether an optimizer owns weights of these adapters, and whether they train by now."""
        if self._loaded:
            owned = {id(one) for group in optimizer.param_groups for one in group["params"]}
            self._loaded = [one for one in self._loaded if one.is_frozen(owned)]

    def at_the_end(self) -> list[dict[str, Any]]:
        """The adapters that an optimizer stepped and that could not train."""
        return [one.told for one in self._loaded if one.is_owned]

    def _watch(self, kind: Any) -> None:
        load = vars(kind)["from_pretrained"].__func__
        kind.from_pretrained = classmethod(behind(load, self._look))

    def _look(self, arguments: tuple[Any, ...], keywords: dict[str, Any], model: Any) -> None:
        with suppress(Exception):  # how adapters are named has moved from release to release
            flag = keywords.get("is_trainable", arguments[_FLAG_PLACE] if len(arguments) > _FLAG_PLACE else False)
            name = keywords.get("adapter_name", arguments[_NAME_PLACE] if len(arguments) > _NAME_PLACE else "default")
            frame = sys._getframe(2)  # noqa: SLF001 - who loads it
            code = frame.f_code
            if not flag and "site-packages" not in code.co_filename and len(self._loaded) < MAX_ADAPTERS:
                told = {"adapter": name, "instead": "", "file": code.co_filename, "line": frame.f_lineno}
                self._loaded.append(_Loaded(model, {**told, "function": code.co_name}))


class _Loaded:
    """An adapter that was loaded frozen, and whether an optimizer has been given its weights, and not simply all of the model's."""

    def __init__(self, model: Any, told: dict[str, Any]) -> None:
        self.told = told
        self.is_owned = False
        mark = f".{told['adapter']}."
        named = list(model.named_parameters())
        self._own = [weakref.ref(one) for name, one in named if mark in name]
        self._other = next((weakref.ref(one) for name, one in named if mark not in name), None)

    def is_frozen(self, owned: set[int]) -> bool:
        """Whether it is still frozen; notes whether it is among what a step is made of."""
        alive = [one for ref in self._own if (one := ref()) is not None]
        other = self._other() if self._other is not None else None
        is_picked = other is not None and id(other) not in owned
        self.is_owned = self.is_owned or (is_picked and any(id(one) in owned for one in alive))
        return bool(alive) and not any(one.requires_grad for one in alive)
