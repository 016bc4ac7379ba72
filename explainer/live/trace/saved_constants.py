"""What a custom Function's forward computes and saves, where its backward is derived again: to that derivative it is a constant.

Grad mode is off in a forward: of what it saves, autograd knows the way only to inputs and outputs. `gradgradcheck` fails for such
a Function, `gradcheck` passes, and nothing is raised. Functions of libraries know what they do.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, suppress
from typing import Any

from ..frame import leave_no_frame  # noqa: TID252 - `live` is loaded under a name of its own
from .flow import Flow
from .place import FIRST_LINE, Places, describe

MAX_LOOKED_AT, MAX_TOLD = 400, 8
_ONCE = "DelayedError"  # what `once_differentiable` puts in the way of a second derivative, which it refuses
# Operations whose result has no slope: what comes of them alone is a constant anyhow.
_STEPS = frozenset(
    {"sign", "sgn", "floor", "ceil", "round", "trunc", "gt", "lt", "ge", "le", "eq", "ne", "__gt__", "__lt__", "__ge__", "__le__"}
    | {"__eq__", "__ne__", "argmax", "argmin", "argsort", "isfinite", "isnan", "isinf", "heaviside", "size", "zeros_like"}
    | {"ones_like", "empty_like", "rand_like", "randn_like", "detach", "bernoulli", "floor_divide", "new_zeros", "new_ones"}
)  # fmt: skip


class SavedConstants:
    """Looks at what the program's Functions have saved, and at the backward passes of theirs that record a graph."""

    def __init__(self, torch: Any, flow: Flow, places: Places) -> None:
        self._torch, self._flow, self._places = torch, flow, places
        self._known: dict[Any, int] = {}
        self._left = MAX_LOOKED_AT
        self._told: dict[Any, dict[str, Any]] = {}
        self._local = threading.local()

    def watch(self, undo: ExitStack) -> None:
        """Look from now on; closing the stack puts torch's methods back.

        What is saved is looked at as it is handed over: to read it back of the node may run a checkpointed segment again.
        """
        module = self._torch.autograd.function
        apply, run, save = (
            module.Function.__dict__["apply"],
            module.BackwardCFunction.apply,
            module.FunctionCtx.save_for_backward,
        )
        saved, local = self, self._local

        def applied(cls: Any, *arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            before, local.saved, began = getattr(local, "saved", None), [], len(saved._flow)
            try:
                result = apply.__func__(cls, *arguments, **keywords)
                with suppress(Exception):  # the program must run whatever we cannot read of it
                    saved._look(cls, result, arguments, began)
            except Exception as error:
                leave_no_frame(error)
                raise
            finally:
                local.saved = before
            return result

        def ran(this: Any, *gradients: Any) -> Any:
            __tracebackhide__ = True
            try:
                result = run(this, *gradients)
            except Exception as error:
                leave_no_frame(error)
                raise
            with suppress(Exception):
                saved._derive(this, result)
            return result

        def kept(this: Any, *tensors: Any) -> Any:
            __tracebackhide__ = True
            if getattr(local, "saved", None) is not None:
                local.saved.extend(tensors)
            return save(this, *tensors)

        module.Function.apply, module.BackwardCFunction.apply = classmethod(applied), ran
        module.FunctionCtx.save_for_backward = kept
        undo.callback(setattr, module.Function, "apply", apply)
        undo.callback(setattr, module.BackwardCFunction, "apply", run)
        undo.callback(setattr, module.FunctionCtx, "save_for_backward", save)

    def told(self) -> list[dict[str, Any]]:
        """The Functions, by name, each with the line of its forward and which of what it saves, counted from 0."""
        return list(self._told.values())[:MAX_TOLD]

    def _look(self, kind: Any, result: Any, arguments: tuple[Any, ...], began: int) -> None:
        """A Function has run: what it has saved beside its inputs and outputs, if that depends on what requires grad."""
        code = getattr(kind.forward, "__code__", None)
        if self._left <= 0 or kind in self._known or code is None or not self._places.is_own(code):
            return
        self._left -= 1
        tensor = self._torch.Tensor
        outputs = [one for one in (result if isinstance(result, tuple) else (result,)) if isinstance(one, tensor)]
        if not any(one.requires_grad for one in outputs):
            return
        with self._torch._C.DisableTorchFunction():  # noqa: SLF001
            given = [one for one in (*arguments, *outputs) if isinstance(one, tensor)]
            for place, one in enumerate(self._local.saved):
                is_value = isinstance(one, tensor) and one.is_floating_point() and not one.requires_grad
                if is_value and not any(one is each for each in given) and self._depends(one, began):
                    self._known[kind] = place
                    return

    def _depends(self, tensor: Any, began: int) -> bool:
        """Whether a tensor was made, since an operation, of what requires grad, by operations with a slope."""
        number = self._flow.maker(tensor)
        queue, seen = [number] if number is not None and number >= began else [], set()
        while queue:
            at = queue.pop()
            operation = self._flow.get(at)
            if operation is None or at in seen or operation.name in _STEPS:
                continue
            seen.add(at)
            if operation.took_grad:
                return True
            queue.extend(one for one in operation.inputs if one >= began)
        return False

    def _derive(self, node: Any, result: Any) -> None:
        """A Function's backward has run, and may record a graph: where another backward comes by there, it is derived again."""
        kind = getattr(node, "_forward_cls", None)
        if kind not in self._known or kind in self._told:
            return
        gradients = result if isinstance(result, tuple) else (result,)
        nodes = [one.grad_fn for one in gradients if isinstance(one, self._torch.Tensor) and one.grad_fn is not None]
        for one in nodes[:1] if not any(each.name() == _ONCE for each in nodes) else ():
            one.register_prehook(lambda _: self._tell(kind))

    def _tell(self, kind: Any) -> None:
        place = describe((kind.forward.__code__, FIRST_LINE))
        self._told.setdefault(kind, {"operation": kind.__name__, "saved": str(self._known[kind]), **place})
