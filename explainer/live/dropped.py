"""Columns that the Trainer has dropped from the training set and that the program's own loss reads with a default: it never gets them."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType
from typing import Any

from .frame import behind
from .imports import after_import

METHODS = ("compute_loss", "training_step")
MAX_TOLD = 20
AHEAD = 8  # instructions from a key to the call that takes it


class Dropped:
    """Notes each such column, with the line that reads it."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, Any]] = {}

    def watch(self) -> None:
        """Look at what each Trainer takes out of its training set."""
        after_import("transformers.trainer", lambda module: self._watch(module.Trainer))

    def at_the_end(self) -> list[dict[str, Any]]:
        """The columns, each once."""
        return list(self._found.values())[:MAX_TOLD]

    def _watch(self, trainer: Any) -> None:
        # The one place that knows what it drops.
        trainer._remove_unused_columns = behind(trainer._remove_unused_columns, self._saw)  # noqa: SLF001

    def _saw(self, arguments: tuple[Any, ...], keywords: dict[str, Any], kept: Any) -> None:
        with suppress(Exception):  # a dataset or a Trainer of a kind of its own may be anything
            this, dataset = arguments[0], arguments[1] if len(arguments) > 1 else keywords["dataset"]
            given = [one for one in (*arguments[2:], *keywords.values()) if isinstance(one, str)]
            if any("training" in one.lower() for one in given):
                self._look(this, set(dataset.column_names) - set(kept.column_names))

    def _look(self, trainer: Any, columns: set[str]) -> None:
        for code in _own_methods(type(trainer)):
            for name, line in keys_read(code, columns):
                told = {"column": name, "model": type(trainer.model).__name__, "file": code.co_filename, "line": line}
                self._found.setdefault(name, {**told, "function": code.co_name})


def _own_methods(kind: type) -> Iterator[CodeType]:
    """What the program's classes, above the library's, make of a batch."""
    for one in kind.__mro__:
        if one.__module__.startswith("transformers."):
            return
        for name in METHODS:
            code = getattr(vars(one).get(name), "__code__", None)
            if code is not None and "site-packages" not in code.co_filename:
                yield code


def keys_read(code: CodeType, names: set[str]) -> Iterator[tuple[str, int]]:
    """The names of columns that a function reads by `.pop(name, ...)` or `.get(name)` and keeps, each with its line."""
    listed = list(dis.get_instructions(code))
    line = code.co_firstlineno
    for at, one in enumerate(listed):
        started = getattr(one, "line_number", None) or one.starts_line
        line = int(started) if started and started is not True else line
        if (
            one.opname.startswith("LOAD_CONST")
            and one.argval in names
            and at
            and listed[at - 1].argval in ("pop", "get")
        ):
            call = next(
                (place for place in range(at + 1, min(at + AHEAD, len(listed) - 1)) if _is_call(listed[place])), None
            )
            if call is not None and listed[call + 1].opname != "POP_TOP":
                yield str(one.argval), line


def _is_call(one: dis.Instruction) -> bool:
    return one.opname.startswith("CALL")
