"""The report of one process: what happened, written atomically into the folder that the parent reads."""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

from . import handled, stack
from .collective import Collectives, sequence
from .compare import compared, software
from .frame import is_ours, without_our_frames
from .last_losses import LastLosses
from .rank import ALIVE, Place, now

SCHEMA = "gradfix.live/1"
STEPS = ".steps"
MAX_BASES = 8
MAX_TEXT = 20_000
MAX_LOOKS = 3
MAX_LAST = 5
NOTED = "__gradfix_noted__"
_ENDS = ("uncaught", "thread")
_HEADING = "Traceback (most recent call last):\n"


def _text(error: BaseException, *, is_whole: bool) -> str:
    """The traceback as Python prints it; where the exception has not yet come all the way, with the frames above it."""
    trace = error.__traceback__
    is_bare = trace is not None and trace.tb_next is None and is_ours(trace.tb_frame.f_code.co_filename)
    text = "".join(traceback.format_exception(type(error), error, None if is_bare else trace))
    if is_bare and not is_whole and error.__cause__ is None and error.__context__ is None:
        text = _HEADING + text
    if not is_whole and text.startswith(_HEADING):
        # Of the running frames those above the first one that it has come to.
        outer = trace.tb_frame.f_back if trace is not None else None
        stack = traceback.extract_stack(outer or sys._getframe(1))  # noqa: SLF001 - the only way to the running frames
        above = [one for one in stack if not is_ours(one.filename)]
        text = _HEADING + "".join(traceback.format_list(above)) + text.removeprefix(_HEADING)
    return text[-MAX_TEXT:]


class Recorder:
    """Collects what a process reports, and writes it when the process ends, fails or has made enough steps."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.started = time.monotonic()
        self.failures: list[dict[str, Any]] = []
        self.parts: dict[str, Any] = {}
        self.at_end: list[Callable[[], None]] = []
        self.tracer: Any = None
        self.steps_of: Callable[[Any], int] | None = None
        self.place = Place()
        self.collectives = Collectives()
        self.last_losses = LastLosses()
        self._stacks = stack.Stacks()
        self._alive = ""
        self._written = ""
        self._is_ended = False
        self._is_watched = False
        self._is_forked = False
        self._folder = options["folder"]
        self._owner = os.getpid()
        self._thread = threading.local()

    def install(self) -> None:
        """Take part in what Python does with exceptions and at the end."""
        self._chain_hooks()
        self._watch_printing()
        handled.watch(self)
        self.say_alive()
        atexit.register(self._end)
        os.register_at_fork(after_in_child=self._forked)

    def _end(self) -> None:
        """The last look, and the last writing.

        Python keeps an uncaught exception for post-mortem debuggers: there it is found also where the program, as typer
        does, has put another excepthook in the place of ours.
        """
        uncaught = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        if isinstance(uncaught, BaseException):
            self.note(uncaught, "uncaught")
        self.look_at_the_end()
        self._is_ended = True
        self.write()

    def end_child(self) -> None:
        """The last writing of a forked rank, or of a worker that has trained or failed; an exception that ends it is on its way."""
        if self.place.is_helper or (self.place.rank is None and not (self.parts.get("steps") or self.failures)):
            return
        error = sys.exc_info()[1]
        if error is not None:
            self.note(error, "uncaught")
        self.look_at_the_end()
        self._is_ended = True
        self.write()

    def say_alive(self) -> None:
        """Tell that this process runs, where it is a rank or the run's time is limited; once more where it gets its rank."""
        is_rank = self.place.rank is not None and not self.place.is_helper
        deadline = self.options.get("deadline")
        if self._alive == self.place.name or not (is_rank or (deadline and not self.place.is_helper)):
            return
        path = os.path.join(self._folder, f"{os.getpid()}@{self.place.node}{stack.STACK}")
        number = self._stacks.arm(path, is_rank=is_rank, is_timed=bool(deadline))
        self._remove(f"{self._alive}{ALIVE}" if self._alive else "")
        self._alive = self.place.name
        self.place.mark()
        self.place.say_alive(
            self._folder,
            launch=self.options.get("launch"),
            argv=sys.argv[:50] if hasattr(sys, "argv") else [],
            signal=number,
        )

    def watch_group(self) -> None:
        """A process group is about to be made: from now on this process may wait for others."""
        if self.options.get("deadline") and not self._is_watched:
            self._is_watched = True
            stack.watch(self, self.options["deadline"])

    def know_rank(self) -> None:
        """Take the rank that torch.distributed has given."""
        group = sys.modules["torch.distributed"]
        if self.place.become(group.get_rank(), group.get_world_size()):
            self._owner = os.getpid()
            self.say_alive()

    def _remove(self, name: str) -> None:
        if name:
            with suppress(OSError):
                os.remove(os.path.join(self._folder, name))

    def look_at_the_end(self) -> None:
        """What is asked for when a program ends without a failure."""
        # What was raised and went no further the program has dealt with.
        has_failed = any(one["where"] not in (handled.HANDLED, "raised") for one in self.failures)
        for look in self.at_end if os.getpid() == self._owner and not has_failed else ():
            try:
                look()
            except Exception as fault:  # noqa: BLE001 - the user's objects may do anything when they are looked at
                self.parts["fault"] = f"{type(fault).__name__}: {fault}"[:200]

    def _forked(self) -> None:
        """A forked child reports for itself, from now on."""
        self._owner, self._is_forked = os.getpid(), True
        self.failures = []
        self.parts = {key: value for key, value in self.parts.items() if key == "environment" or not value}
        self._stacks.forked()
        self._stacks, self._alive, self._written, self._is_watched = stack.Stacks(), "", "", False
        self.place.look()
        self._end_of_child()
        # A fork of a process without a rank may be given one by `init_process_group`, or by variables of its own.
        if self.place.rank is not None and not self.place.is_helper:
            self.say_alive()

    def _end_of_child(self) -> None:
        """A child that multiprocessing has forked leaves by `os._exit`, past `atexit`, and runs its own finalizers first."""
        util = sys.modules.get("multiprocessing.util")
        if util is not None:
            util.register_after_fork(self, lambda one: util.Finalize(None, one.end_child, exitpriority=-100))

    def _chain_hooks(self) -> None:
        previous, in_thread = sys.excepthook, threading.excepthook

        def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            self.note(error, "uncaught")
            self.write()
            previous(kind, error, without_our_frames(trace))

        def thread_hook(arguments: threading.ExceptHookArgs) -> None:
            if arguments.exc_value is not None:
                self.note(arguments.exc_value, "thread")
                self.write()
            in_thread(arguments)

        sys.excepthook, threading.excepthook = hook, thread_hook

    def _watch_printing(self) -> None:
        """Note what a program prints with the `traceback` module: the exceptions that it catches and reports itself."""
        make = traceback.TracebackException.__init__

        def init(this: Any, exc_type: Any, exc_value: Any, exc_traceback: Any, **keywords: Any) -> None:
            if isinstance(exc_value, BaseException) and exc_traceback is not None:
                self.note(exc_value, "printed")
            make(this, exc_type, exc_value, without_our_frames(exc_traceback), **keywords)

        traceback.TracebackException.__init__ = init  # type: ignore[method-assign,assignment]

    def note(self, error: BaseException, where: str) -> None:
        """Remember an exception and what is known at this moment; met again further out, only where it came to is new."""
        if isinstance(error, (SystemExit, KeyboardInterrupt)) or getattr(self._thread, "is_noting", False):
            return  # our own printing of a traceback comes by here too
        self._thread.is_noting = True
        try:
            self._note(error, where)
        except Exception as fault:  # noqa: BLE001 - the user's exception may do anything when it is looked at
            self.parts["fault"] = f"{type(fault).__name__}: {fault}"[:200]
        finally:
            self._thread.is_noting = False

    def _note(self, error: BaseException, where: str) -> None:
        known = getattr(error, NOTED, None)
        if known is not None:
            if known["where"] == "raised" and where != "raised":
                known.update(where=where, text=_text(error, is_whole=True))
                known["seen"] = known["seen"] or self._look(error, where)
                self._write_rank(where)
            return
        failure = {
            "type": f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins."),
            "message": str(error)[:MAX_TEXT],
            "bases": [one.__name__ for one in type(error).__mro__[1:]][:MAX_BASES],
            "where": where,
            "steps": dict(self.parts.get("steps", {})),
            "seconds": round(time.monotonic() - self.started, 3),
            **now(),
            **self._among_ranks(error),
            "seen": self._look(error, where),
        }
        # The mark is on the exception itself: a reference to it would keep its frames and their tensors alive, and its
        # id comes back once it is gone, as in a loop that catches one failure after another.
        with suppress(AttributeError, TypeError):
            setattr(error, NOTED, failure)
        failure["text"] = _text(error, is_whole=where != "raised")
        self.failures.append(failure)
        # Those that were looked at, and the last ones.
        del self.failures[MAX_LOOKS : max(len(self.failures) - MAX_LAST, MAX_LOOKS)]
        self._write_rank(where)

    def _write_rank(self, where: str) -> None:
        """Write at once what a rank is about to tell: a launcher ends the ranks as soon as one of them has failed.

        So does a helper that was forked, as a worker of a loader: it hands the failure on, and leaves without a last word.
        """
        if where != "raised" and (self.place.rank is not None or self._is_forked):
            self.write()

    def _among_ranks(self, error: BaseException) -> dict[str, Any]:
        """What is compared with other ranks: collectives so far, shapes in the program's own frame."""
        if self.place.rank is None:
            return {}
        return {"collectives": self.collectives.told(), "sequence": sequence(), **compared(error)}

    def _look(self, error: BaseException, where: str) -> dict[str, Any]:
        """What the live objects say; of those that a program catches of the first only, so that a loop that catches many stays quick."""
        if len(self.failures) >= MAX_LOOKS and where not in _ENDS:
            return {}
        from . import crash

        try:
            return crash.look(error, self.tracer, self.steps_of)
        except Exception as fault:  # noqa: BLE001 - the user's objects may do anything when they are looked at
            return {"fault": f"{type(fault).__name__}: {fault}"[:200]}

    def tell(self, step: dict[str, Any]) -> None:
        """Hand a step over while the program runs, where the parent wants it: a line of JSON behind the others."""
        if not self.options.get("told") or os.getpid() != self._owner:
            return
        path = os.path.join(self._folder, f"{os.getpid()}{STEPS}")
        with suppress(OSError), open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"pid": os.getpid(), **step}) + "\n")

    def write(self) -> None:
        """Write the report of this process; the last writing counts. Nothing to say is no file."""
        if os.getpid() != self._owner or not (self.failures or self.parts):
            return
        report = {
            "schema": SCHEMA,
            "pid": os.getpid(),
            "parent": os.getppid(),
            "rank": os.environ.get("RANK") if self.place.rank is None else str(self.place.rank),
            "place": self.place.told(),
            "now": now(),
            "ended": self._is_ended,
            **self._job(),
            "argv": sys.argv[:50],
            "seconds": round(time.monotonic() - self.started, 3),
            "failures": self.failures,
            **self.parts,
        }
        name = f"{self.place.name}.json"
        path = os.path.join(self._folder, name)
        part = f"{path}.{threading.get_ident()}.part"
        try:
            with open(part, "w", encoding="utf-8") as file:
                json.dump(report, file, default=str)
            os.replace(part, path)
        except OSError:
            return  # the parent says that no report came
        self._remove(self._written if self._written != name else "")  # written before the rank was known
        self._written = name

    def _job(self) -> dict[str, Any]:
        """What this process shares with others of its job."""
        if self.place.rank is None or self.place.is_helper:
            return {}
        return {"collectives": self.collectives.told(), "sequence": sequence(), "with": software()}
