"""Batches that a program leaves out since their training step failed: its handler, meant for a rare failure, takes a fault for one.

What is caught again and again is told where the step stands in the `try` and the handler makes none: no fallback that does the
same in another way, no further attempt, and no memory that has run out.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.ingest.text import read_text
from explainer.model.incident import Frame
from explainer.model.verification import Failure, ProcessReport
from explainer.source.file import SourceFile
from explainer.source.loop.phase import trains
from explainer.source.name import Names, dotted_name
from explainer.source.place import place_of
from explainer.source.program import Program, read_program
from explainer.source.tree import walk

MANY = 2  # of the few steps for which a trace goes on
ENOUGH = 6  # of the few that a process tells
_SHARE = 0.2
_MEMORY = re.compile(r"out of memory|OutOfMemory|can't allocate memory|ALLOC_FAILED|not enough memory", re.IGNORECASE)
_SAYS = re.compile(
    r"(?:^|\.)(?:print|debug|info|warning|warn|error|exception|log|critical|print_exc|write|echo|append)$"
)
# What a program tries out to see what the machine has.
_PROBE = re.compile(r"\b(?:CUDA|NVIDIA|HIP|XPU|MPS|driver)\b|not compiled|not available|not implemented", re.IGNORECASE)
_ZEROS = frozenset({"zeros", "new_zeros", "zeros_like"})
# What torch refuses whatever the values are, with what a handler does that expects it.
_OWN_FAULTS = (
    (re.compile(r"Can't call numpy\(\) on Tensor that requires grad"), frozenset({"detach", "numpy"})),
    (
        re.compile(
            r"(?:differentiated Tensors?|element \d+ of tensors) does not require grad|not have been used in the graph"
            r"|through the graph a second time|modified by an inplace operation|leaf Variable that requires grad"
        ),
        frozenset({"requires_grad_", "requires_grad", "enable_grad", "set_grad_enabled", "no_grad", "clone"}) | _ZEROS,
    ),
)
_CATCHES = frozenset({"Exception", "BaseException"})
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """An exception for which a program left out `count` batches of training while it made `steps` steps.

    `is_beside` where the steps were made, and something that belongs to them was left out; `is_elsewhere` where the handler did
    something else for it.
    """

    failure: Failure
    count: int
    steps: int
    is_beside: bool = False
    is_elsewhere: bool = False

    @property
    def says(self) -> str:
        """What happened, in words."""
        message = self.failure.message.strip().split("\n")[0][:200]
        return f"it caught {self.failure.type} {self.count} times in {self.steps} steps, and {self._left}: {message}"

    @property
    def caught(self) -> str:
        """The same below the exception itself."""
        return f"the program caught this at least {self.count} times in {self.steps} steps, and {self._left}"

    @property
    def _left(self) -> str:
        if self.is_elsewhere:
            return "did something else in its place"
        return "did nothing in its place" if self.is_beside else "left these batches out"


def caught_in_steps(processes: Sequence[ProcessReport], root: str) -> tuple[GivenUp, ...]:
    """What processes that make steps do not do in them, for an exception that they catch."""
    return (
        *given_up(processes, root),
        *dropped(processes, root, is_always=True),
        *done_otherwise(processes, root),
    )


def given_up(processes: Sequence[ProcessReport], root: str, *, stepless: bool = False) -> Iterator[GivenUp]:
    """What traced processes that make steps give batches up for, the commonest first; with `stepless` also those that make none."""
    for process in processes:
        steps = sum(count for _, count in process.steps)
        for failure, count in _raised(process) if steps or stepless else ():
            if count >= MANY and count >= _SHARE * (count + steps) and _is_given_up(failure, root):
                yield GivenUp(failure=failure, count=count, steps=steps)


def dropped(
    processes: Sequence[ProcessReport], root: str, *, is_always: bool = False, of_all: bool = True
) -> Iterator[GivenUp]:
    """What traced processes catch beside their steps, with a handler that says so at most: an average that is never moved.

    With `is_always` at every step, or nearly so; without `of_all` also by a handler that names what it expects, but no probe.
    """
    for process in processes:
        steps = sum(count for _, count in process.steps)
        told = (one for one in _raised(process) if of_all or not _is_probe(one[0]))
        for failure, count in told:
            if count >= (max(MANY, min(steps, ENOUGH) - 1) if is_always else MANY) and _is_dropped(
                failure, root, of_all=of_all
            ):
                yield GivenUp(failure=failure, count=count, steps=steps, is_beside=True)


def done_otherwise(processes: Sequence[ProcessReport], root: str) -> Iterator[GivenUp]:
    """What traced processes catch again and again that no data and no machine brings about, and do something else for.

    A tensor with a graph is refused to NumPy whatever its values are, and a gradient where there is no way to it; a handler that
    expects that detaches the tensor, or sets its flag.
    """
    for process in processes:
        steps = sum(count for _, count in process.steps)
        for failure, count in _raised(process) if steps else ():
            expected = next((words for message, words in _OWN_FAULTS if message.search(failure.message)), None)
            if count >= max(MANY, min(steps, ENOUGH)) and expected is not None:
                caught = _caught(failure, root)
                handled = [each for one in (caught[1].handlers if caught is not None else ()) for each in walk(one)]
                knows = any(isinstance(one, ast.Raise) or getattr(one, "attr", "") in expected for one in handled)
                if handled and not knows:
                    yield GivenUp(failure=failure, count=count, steps=steps, is_elsewhere=True)


def _caught(failure: Failure, root: str) -> tuple[SourceFile, ast.Try, Program] | None:
    """The `try` of the program that caught an exception, with its file and the program."""
    records = [record for one in read_text(failure.text) for record in one.exceptions]
    frames = [one for one in records[-1].frames if one.library is None and one.line] if records else []
    program = read_program(root, [one.file for one in frames])
    found = (caught_by(frame, failure.kinds, program) for frame in reversed(frames))
    return next(((*one, program) for one in found if one is not None), None)


def caught_last(processes: Sequence[ProcessReport], root: str) -> Iterator[Failure]:
    """What traced processes caught last, with no step behind it, or again and again and nothing else.

    Not a want of memory, not what tries out the machine, and not what a library asked torch for and caught itself.
    """
    for process in processes:
        made = sum(count for _, count in process.steps)
        told = [one for one in process.failures if one.where == "raised" and one.text]
        told = [one for one in told if not _is_memory(one) and not _is_probe(one)]
        is_one = len(told) >= MANY and len({(one.type, one.message) for one in told}) == 1
        is_last = bool(told) and (is_one or sum(count for _, count in told[-1].steps) == made)
        if is_last and (_is_asked_for(told[-1]) or _caught(told[-1], root) is not None):
            yield told[-1]


def _is_asked_for(failure: Failure) -> bool:
    """Whether a line of the program's own called what torch refused."""
    records = [record for one in read_text(failure.text) for record in one.exceptions]
    frames = [one for one in (records[-1].frames if records else ()) if one.library not in ("torch", "python")]
    return bool(frames) and frames[-1].library is None


def left_out_of_loss(process: ProcessReport, root: str) -> Iterator[Failure]:
    """What a process caught while it put a loss together, with a handler that says so at most: the term is not in the sum."""
    told = (failure for failure, _ in _raised(process) if not _is_probe(failure))
    return (failure for failure in told if _is_dropped(failure, root, of_all=False))


def _raised(process: ProcessReport) -> Iterator[tuple[Failure, int]]:
    """What a process raised but for want of memory, each exception with how often, the commonest first."""
    told = [one for one in process.failures if one.text and not _is_memory(one)]
    first = {(one.type, one.message): one for one in reversed(told)}
    return ((first[key], count) for key, count in Counter((one.type, one.message) for one in told).most_common())


def _is_dropped(failure: Failure, root: str, *, of_all: bool = True) -> bool:
    """Whether what caught an exception is for all there are, and does nothing in its place; with `of_all` one of the program's own line."""
    records = [record for one in read_text(failure.text) for record in one.exceptions]
    frames = records[-1].frames if records else ()
    if not frames or (of_all and frames[-1].library is not None):
        return False  # what a library tries
    program = read_program(root, [one.file for one in frames if one.library is None])
    for frame in reversed(frames):
        found = caught_by(frame, failure.kinds, program) if frame.library is None and frame.line else None
        if found is not None:
            handlers = [one for one in found[1].handlers if _catches(one, failure.kinds)]
            if of_all:
                return _takes_all(handlers[0]) and all(map(_says_so, handlers[0].body)) and not found[1].orelse
            return all(map(_gives_nothing, handlers[0].body))
    return False


def _takes_all(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or (dotted_name(handler.type) or "") in _CATCHES


def _says_so(statement: ast.stmt) -> bool:
    """Whether a statement of a handler prints, counts, or goes on."""
    if isinstance(statement, ast.Expr):
        called = dotted_name(statement.value.func) if isinstance(statement.value, ast.Call) else ""
        return isinstance(statement.value, ast.Constant) or _SAYS.search(called or "") is not None
    return isinstance(statement, (ast.Pass, ast.Continue, ast.AugAssign))


def _gives_nothing(statement: ast.stmt) -> bool:
    """Whether a statement of a handler says so, or gives a zero, or nothing, in the place of what failed."""
    if isinstance(statement, ast.If):
        return all(map(_gives_nothing, (*statement.body, *statement.orelse)))
    value = statement.value if isinstance(statement, (ast.Return, ast.Assign)) else None
    if isinstance(statement, (ast.Return, ast.Assign)):
        called = (dotted_name(value.func) or "").rpartition(".")[2] if isinstance(value, ast.Call) else ""
        return value is None or isinstance(value, ast.Constant) or called in _ZEROS
    return _says_so(statement)


def _is_probe(failure: Failure) -> bool:
    """Whether an exception only tells what the machine or its packages have."""
    return _PROBE.search(failure.message) is not None or failure.type in ("ImportError", "ModuleNotFoundError")


def _is_memory(failure: Failure) -> bool:
    return _MEMORY.search(f"{failure.type}: {failure.message}") is not None


def _is_given_up(failure: Failure, root: str) -> bool:
    """Whether what caught an exception had a whole training step in its `try`, and makes no other one."""
    found = _caught(failure, root)
    if found is None:
        return False
    file, block, program = found
    return (
        any(trains(one, file, program) for one in block.body)
        and not any(trains(one, file, program) for handler in block.handlers for one in handler.body)
        and not _tries_again(block, file)
    )


def caught_by(frame: Frame, kinds: frozenset[str], program: Program) -> tuple[SourceFile, ast.Try] | None:
    """The `try` around a frame's line that catches an exception of one of its classes, or what `with suppress(...)` is written in its place."""
    path = place_of(frame.file, program.root)
    below: ast.AST | None = program.at(path, frame.line, frame.mark) if path is not None and frame.line else None
    file = program.files.get(path) if path is not None else None
    while below is not None and file is not None and not isinstance(below, _DEFINITIONS):
        above = file.parents.get(below)
        if isinstance(above, ast.Try) and below in above.body and any(_catches(one, kinds) for one in above.handlers):
            return file, above
        block = (
            _suppressing(above, program.names(file)) if isinstance(above, ast.With) and below in above.body else None
        )
        if block is not None and any(_catches(one, kinds) for one in block.handlers):
            return file, block
        below = above
    return None


def _suppressing(block: ast.With, names: Names) -> ast.Try | None:
    """`with suppress(RuntimeError):` as the `try` whose handler passes."""
    given = [one.context_expr for one in block.items]
    kinds = [
        kind
        for one in given
        if isinstance(one, ast.Call) and names.is_call(one, "contextlib.suppress")
        for kind in one.args
    ]
    if not kinds:
        return None
    handler = ast.ExceptHandler(type=ast.Tuple(elts=kinds, ctx=ast.Load()), name=None, body=[ast.Pass()])
    return ast.Try(body=block.body, handlers=[handler], orelse=[], finalbody=[])


def _catches(handler: ast.ExceptHandler, kinds: frozenset[str]) -> bool:
    if handler.type is None:
        return True
    given = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {(dotted_name(one) or "").rpartition(".")[2] for one in given}
    return bool(names & (_CATCHES | kinds))


def _tries_again(block: ast.Try, file: SourceFile) -> bool:
    """Whether a loop around a `try` is left where it succeeds: one of a few attempts for the same batch."""
    loop = file.enclosing(block, ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)
    leaves = (ast.Break, ast.Return)
    done = [*block.body, *block.orelse]
    return isinstance(loop, (ast.For, ast.While)) and any(
        isinstance(one, leaves) for each in done for one in walk(each)
    )
