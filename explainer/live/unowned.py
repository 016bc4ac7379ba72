"""Trainable parameters that get gradients in each step and belong to no optimizer, while the rest of their model does."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator
from typing import Any

from .gradient import values_of
from .lost import find_lost, in_plain_containers, plain_leaves
from .name import outermost
from .trace.place import Places, describe

FIRST, LAST = (
    1,
    2,
)  # the steps, counted from 0, before which it is looked: a model may still be put together in the first
# Later it is looked for parts that were thawed or made meanwhile: each fourth step at first, then ever more rarely.
OFTEN, SOON = 4, 64
MAX_LOOKED_AT = 2_000
MAX_NAMES = 12


class Unowned:
    """Looks at the models of the program twice while it trains, again where another part of them trains, and once at its end."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._places = Places(torch)
        self._made: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._models: list[dict[str, Any]] | None = None
        self._lost: list[tuple[str, str, Any, float]] = []
        self._plain: list[tuple[Any, Any, str, str, Any, float]] = []
        self._held: list[weakref.ref[Any]] = []
        self._confirmed = LAST

    def note_makers(self) -> None:
        """Remember the line that makes each optimizer."""
        optimizer = self._torch.optim.Optimizer
        make, made, places = optimizer.__init__, self._made, self._places

        @functools.wraps(make)
        def init(this: Any, *arguments: Any, **keywords: Any) -> None:
            __tracebackhide__ = True
            made[this] = places.here(2)
            make(this, *arguments, **keywords)

        optimizer.__init__ = init

    def made(self) -> list[Any]:
        """The optimizers of the program, in the order in which they were made."""
        return list(self._made)

    def look(self, step: int) -> None:
        """Before a step: which parameters have a gradient that no optimizer will use."""
        if step == FIRST and self._models is None:
            optimizers = list(self._optimizers())
            owned = {id(one) for optimizer in optimizers for one in _owned(optimizer)}
            roots = outermost()
            held = [root for root in roots if any(id(one) in owned for one in root.parameters())]
            left = self._left_by(optimizers, roots, held)
            meant = [left] if left is not None else held
            self._models = [found for root in meant if (found := self._looked_at(root, owned, optimizers))["left"]]
            self._held = [weakref.ref(root) for root in held]
            self._lost = [
                (model, name, one, _sum(one))
                for model, name, one in find_lost(self._torch, roots, owned)
                if _trains(one)
            ]
            bare = [root for root in roots if next(root.parameters(), None) is None]
            self._plain = [
                (holder, key, type(root).__name__, path, one, _sum(one))
                for root, holder, key, path in plain_leaves(self._torch, [*held, *bare], owned)
                if _trains(one := holder[key])
            ]
        elif self._models is not None and step != LAST and _is_due(step):
            self._look_again(step)
        elif step == self._confirmed:
            for model in self._models or ():
                model["left"] = {name: kept for name, kept in model["left"].items() if _trains(kept[0])}
        if step == LAST:
            # A tensor that is made anew in each step is an input whose gradient is asked for.
            self._plain = [kept for kept in self._plain if _held(kept[0], kept[1]) is kept[4] and _trains(kept[4])]

    def _look_again(self, step: int) -> None:
        """Where a parameter has come to train that no optimizer has: which of them none will use."""
        held = [root for one in self._held if (root := one()) is not None]
        known = {id(one) for model in self._models or () for one, _ in model["left"].values()}
        had = known | {id(one) for optimizer in list(self._made) for one in _owned(optimizer)}
        if all(
            id(one) in had or not one.requires_grad or one.grad is None for root in held for one in root.parameters()
        ):
            return
        self._confirmed = step + 1
        optimizers = list(self._optimizers())
        owned = {id(one) for optimizer in optimizers for one in _owned(optimizer)}
        found = [self._looked_at(root, owned | known, optimizers) for root in held]
        self._models = [*(self._models or ()), *(one for one in found if one["left"])]

    def _left_by(self, optimizers: list[Any], roots: list[Any], held: list[Any]) -> Any:
        """The one model that trains while optimizers hold nothing that has a gradient: they own what was replaced in it."""
        if not optimizers or any(one.grad is not None for optimizer in optimizers for one in _owned(optimizer)):
            return None
        others = [root for root in roots if root not in held and any(_trains(one) for one in root.parameters())]
        return others[0] if len(others) == 1 else None

    def _looked_at(self, root: Any, owned: set[int], optimizers: list[Any]) -> dict[str, Any]:
        """A model with the parameters that are left out, and what they held; these live on, since the model may not."""
        named = {**dict(in_plain_containers(self._torch, root)), **dict(root.named_parameters())}
        own = {id(one) for one in named.values()}
        mine = [one for one in optimizers if any(id(each) in own for each in _owned(one))]
        left = [(name, one) for name, one in named.items() if id(one) not in owned and _trains(one)][:MAX_LOOKED_AT]
        return {
            "model": type(root).__name__,
            "children": list(dict.fromkeys(name.partition(".")[0] for name in named)),
            "trained": [name for name, one in named.items() if one.requires_grad],
            "empty": [
                [str(index), type(one).__name__]
                for one in mine
                for index, group in enumerate(one.param_groups)
                if not group["params"]
            ],
            "place": describe(
                next((place for one in mine or self._optimizers() if (place := self._made.get(one))), None)
            ),
            "left": {name: (one, _sum(one)) for name, one in left},
        }

    def at_the_end(self, stepped: list[Any]) -> list[dict[str, Any]]:
        """What is left: no optimizer that came later owns it, and the program has not written it by itself."""
        owned = {id(one) for optimizer in (*stepped, *self._optimizers()) for one in _owned(optimizer)}
        told = []
        for model in self._models or ():
            names = [
                name for name, (one, total) in model["left"].items() if id(one) not in owned and _sum(one) == total
            ]
            if names:
                told.append(_told(model, names))
        lost: dict[str, list[str]] = {}
        for kind, name, one, total in self._lost:
            if id(one) not in owned and _sum(one) == total:
                lost.setdefault(kind, []).append(name)
        plain: dict[str, list[str]] = {}
        for holder, key, kind, path, one, total in self._plain:
            if _held(holder, key) is one and id(one) not in owned and _sum(one) == total:
                plain.setdefault(kind, []).append(path)
        told += [_told_lost(kind, names, "is_lost") for kind, names in lost.items()]
        told += [_told_lost(kind, names, "is_plain") for kind, names in plain.items()]
        return told

    def _optimizers(self) -> Iterator[Any]:
        import gc

        kind = self._torch.optim.Optimizer
        return (one for one in gc.get_objects() if issubclass(type(one), kind))


def _held(holder: Any, key: Any) -> Any:
    """What a list or dictionary holds by now."""
    if isinstance(holder, list):
        return holder[key] if key < len(holder) else None
    return holder.get(key)


def _is_due(step: int) -> bool:
    return step % OFTEN == 0 if step <= SOON else step & (step - 1) == 0


def _told_lost(kind: str, names: list[str], how: str) -> dict[str, Any]:
    kept = {"names": names[:MAX_NAMES], "children": [], "whole": [], "empty": []}
    return {"model": kind, "count": len(names), **kept, how: True}


def _told(model: dict[str, Any], names: list[str]) -> dict[str, Any]:
    heads = dict.fromkeys(name.partition(".")[0] for name in names)
    others = {name.partition(".")[0] for name in model["trained"] if name not in names}
    return {
        "model": model["model"], "count": len(names), "names": names[:MAX_NAMES], "children": model["children"],
        "whole": [] if others & set(heads) else list(heads), "empty": model["empty"], **model["place"],
        "is_sharded": all(hasattr(model["left"][name][0], "to_local") for name in names),
    }  # fmt: skip


def _owned(optimizer: Any) -> list[Any]:
    return [one for group in optimizer.param_groups for one in group["params"]]


def _trains(parameter: Any) -> bool:
    """Whether it has a gradient that is not all zero."""
    if not parameter.requires_grad or parameter.grad is None or parameter.is_meta:
        return False
    return bool((values_of(parameter.grad) != 0).any())


def _sum(parameter: Any) -> float:
    return float(values_of(parameter).double().sum())  # of a shard this rank's part: to ask for more takes all ranks
