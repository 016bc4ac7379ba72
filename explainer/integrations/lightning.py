"""`LightningCallback`, for `lightning` and `pytorch_lightning`: the class is made when it is first asked for."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from explainer.integrations.watching import Hooks


class LightningHooks(Hooks):
    """Watches a training of Lightning's Trainer as `gradfix.watch` does a block.

    Args:
        on_silent: "warn", "stop", or a function that is called with the report of what goes wrong in silence.
        summary: print a line at the end of a healthy training too.

    Example:
        >>> from gradfix import LightningCallback
        >>> trainer = lightning.Trainer(callbacks=[LightningCallback(on_silent="stop")])
    """

    def on_fit_start(self, *_: Any) -> None:
        """Put the hooks in."""
        self._watcher.open()

    def on_train_epoch_end(self, trainer: Any, *_: Any) -> None:
        """Keep what was logged, where it is on the CPU by now."""
        values = {name: one.item() for name, one in trainer.callback_metrics.items() if one.device.type == "cpu"}
        self._watcher.note_metrics(values)

    def on_exception(self, _trainer: Any, _module: Any, exception: BaseException) -> None:
        """Note what the live objects say; the traceback is printed later, the card below it."""
        self._watcher.fail(exception)

    def on_fit_end(self, *_: Any) -> None:
        """The last look, and the hooks out."""
        self._watcher.close()


if TYPE_CHECKING:
    from lightning.pytorch.callbacks import Callback

    class LightningCallback(LightningHooks, Callback):  # type: ignore[misc]
        """As `LightningHooks`, for type checkers."""


def _callbacks() -> list[type]:
    """The classes to derive from: of the package that the program has imported, else of the one that is installed."""
    names = [one for one in ("lightning.pytorch", "pytorch_lightning") if one in sys.modules]
    if not names:
        names = ["lightning.pytorch" if find_spec("lightning") else "pytorch_lightning"]
    return list(dict.fromkeys(import_module(name).Callback for name in names))


def __getattr__(name: str) -> type:
    if name != "LightningCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    space = {"__doc__": LightningHooks.__doc__, "__module__": __name__}
    made = type(name, (LightningHooks, *_callbacks()), space)
    return globals().setdefault(name, made)  # type: ignore[no-any-return]
