"""`GradfixCallback` for the Trainer of transformers, and so for TRL: the class is made when it is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explainer.integrations.watching import Hooks


class TrainerHooks(Hooks):
    """Watches a training of transformers' Trainer as `gradfix.watch` does a block.

    Args:
        on_silent: "warn", "stop", or a function that is called with the report of what goes wrong in silence.
        summary: print a line at the end of a healthy training too.

    Example:
        >>> from gradfix import GradfixCallback
        >>> trainer = Trainer(..., callbacks=[GradfixCallback(on_silent="stop")])
    """

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Put the hooks in; anew where the Trainer begins again by itself, as it does with a smaller batch."""
        self._watcher.open()

    def on_log(self, _args: Any, _state: Any, _control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Keep what the Trainer logs: an explanation reads loss and gradient norm in it."""
        self._watcher.note_metrics(logs or {})

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """The last look, and the hooks out."""
        self._watcher.close()


if TYPE_CHECKING:
    from transformers import TrainerCallback

    class GradfixCallback(TrainerHooks, TrainerCallback):  # type: ignore[misc]
        """As `TrainerHooks`, for type checkers."""


def __getattr__(name: str) -> type:
    if name != "GradfixCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from transformers import TrainerCallback

    made = type(name, (TrainerHooks, TrainerCallback), {"__doc__": TrainerHooks.__doc__, "__module__": __name__})
    return globals().setdefault(name, made)  # type: ignore[no-any-return]
