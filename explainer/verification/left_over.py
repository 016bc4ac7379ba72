"""The exception for which a loss or an object is missing: the program caught it, and went on with the number or None that was left over.

`'float' object has no attribute 'backward'` says only that, and so does `'NoneType' object has no attribute 'eval'`. It is told where
what raised stands in a `try` that would have made it: bound its name, kept it on an object, filled its list, returned or yielded it; of a
loss in the same step. So is what kept a model from being given parts that train, where an optimizer then finds none or a loss has no
graph, and what failed in a backward that a program tries again, whose second attempt finds the graph used up.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from explainer.ingest.text import read_text
from explainer.model.incident import Frame, Incident
from explainer.model.verification import Failure, ProcessReport
from explainer.source.file import SourceFile
from explainer.source.loop.phase import trains
from explainer.source.place import place_of
from explainer.source.program import Program, read_program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, reaching, scope_of
from explainer.source.value.resolve import resolver_of
from explainer.verification.given_up import caught_by

_NO_TENSOR = re.compile(r"'(?:float|int|NoneType)' object has no attribute '(backward|item|detach)'")
_NONE = re.compile(r"'NoneType' object has no attribute '(\w+)'")
_EMPTY = "optimizer got an empty parameter list"
_NO_GRAPH = "does not require grad and does not have a grad_fn"
_ADAPTS = "peft"
_SECOND_TIME = "backward through the graph a second time"
_NUMBERS = frozenset({"item", "tolist", "numpy"})
_MAX_VALUES = 60


def caught_instead(incident: Incident, processes: Sequence[ProcessReport], root: str) -> Iterator[Failure]:
    """What a program caught in the step that failed for want of a loss, the latest first, or of a graph that it had tried before."""
    last = incident.exceptions[-1] if incident.exceptions else None
    if last is not None and _SECOND_TIME in last.message:
        yield from _tried_before(processes)
        return
    frames = [one for one in last.frames if one.library is None and one.line] if last is not None else []
    if last is None or not frames:
        return
    trainable = incident.fact("live_trainable")
    if _NO_GRAPH in last.message and trainable is not None and trainable.value == "0":
        caught = [one for process in processes for one, _ in _caught_before(last.message, process)]
        yield from (one for one in caught if _is_of_library(one, _ADAPTS))
        return
    found = _NO_TENSOR.search(last.message)
    is_of_step = found is not None  # what is no loss may have been made, or not, many steps ago
    found = found or _NONE.search(last.message)
    asked = "parameters" if _EMPTY in last.message else found[1] if found is not None else None
    for process in processes if asked is not None else ():
        for failure, end in _caught_before(last.message, process):
            is_near = not is_of_step or failure.steps == end.steps
            if is_near and _makes_the_loss(failure, frames[-1], asked or "", root):
                yield failure


def _caught_before(message: str, process: ProcessReport) -> Iterator[tuple[Failure, Failure]]:
    """What a process caught before it failed with a message, the latest first, each with that failure."""
    before = list(takewhile(lambda one: one.message != message, process.failures))
    end = process.failures[len(before) :][:1]
    for one in reversed(before):
        if end and one.where == "raised" and one.text:
            yield one, end[0]


def _is_of_library(failure: Failure, library: str) -> bool:
    """Whether the code of a library raised it."""
    records = [record for one in read_text(failure.text) for record in one.exceptions]
    return bool(records and records[-1].frames) and records[-1].frames[-1].library == library


def _tried_before(processes: Sequence[ProcessReport]) -> Iterator[Failure]:
    """What the first attempt of a backward raised, at the line at which the next one found no graph, in the same step."""
    for process in processes:
        again = next((one for one in process.failures if _SECOND_TIME in one.message), None)
        before = list(takewhile(lambda one: _SECOND_TIME not in one.message, process.failures))
        place = _own_line(again) if again is not None else None
        if again is not None and place is not None:
            yield from (one for one in before[-1:] if one.text and one.steps == again.steps and _own_line(one) == place)


def _own_line(failure: Failure) -> tuple[str, int | None] | None:
    """The program's own line that a failure came from."""
    records = [record for one in read_text(failure.text) for record in one.exceptions]
    frames = [one for one in records[-1].frames if one.library is None and one.line] if records else []
    return (frames[-1].file, frames[-1].line) if frames else None


def _makes_the_loss(failure: Failure, at: Frame, attribute: str, root: str) -> bool:
    """Whether the `try` that caught an exception would have made what a line then asks for an attribute."""
    records = [record for one in read_text(failure.text) for record in one.exceptions]
    frames = [one for one in records[-1].frames if one.library is None and one.line] if records else []
    program = read_program(root, [one.file for one in (*frames, at)])
    path = place_of(at.file, program.root)
    file = program.files.get(path) if path is not None else None
    statement = program.at(path, at.line) if path is not None and at.line else None
    asked = [one for one in walk(statement) if isinstance(one, ast.Attribute)] if statement is not None else []
    losses = [one.value for one in asked if one.attr == attribute]
    if file is None or len(losses) != 1:
        return False
    for frame in reversed(frames):
        found = caught_by(frame, failure.kinds, program)
        if found is not None:
            where, block = found
            handled = [one for handler in block.handlers for one in handler.body]
            if any(isinstance(node, ast.Raise) or trains(one, where, program) for one in handled for node in walk(one)):
                return False
            return _is_made_in(block, where, frame.line or 0, (losses[0], file), program)
    return False


def _is_made_in(
    block: ast.Try, where: SourceFile, line: int, loss: tuple[ast.expr, SourceFile], program: Program
) -> bool:
    """Whether a value comes from statements of a `try` that had not ended when its line raised, and is no number there."""
    inside = {node for one in [*block.body, *block.orelse] for node in walk(one)}
    kept = loss[0].attr if isinstance(loss[0], ast.Attribute) else None
    keeping = [one for one in inside if isinstance(one, ast.Assign) and _keeps(one, kept)]
    if any((one.end_lineno or 0) >= line for one in keeping) and not any(
        _is_number(one.value, where) for one in keeping
    ):
        return True
    made = [(value, at) for value, at in _behind(*loss, program) if at in inside]
    late = [value for value, at in made if (getattr(at, "end_lineno", 0) or 0) >= line]
    return bool(late) and not any(_is_number(value, where) for value, _ in made)


def _keeps(statement: ast.Assign, name: str | None) -> bool:
    """Whether an assignment gives an object an attribute of a name: `self.model = copy.deepcopy(model)` for `best.model`."""
    return any(isinstance(one, ast.Attribute) and one.attr == name for one in statement.targets)


def _behind(value: ast.expr, file: SourceFile, program: Program) -> Iterator[tuple[ast.expr, ast.AST]]:
    """The values that may become a value, each with the node that hands it on: through names, lists, and own functions."""
    todo = [(value, file)]
    seen: set[ast.AST] = set()
    while todo and len(seen) < _MAX_VALUES:
        one, where = todo.pop(0)
        seen.add(one)
        found: list[tuple[ast.expr, ast.AST, SourceFile]] = []
        for node in walk(one):
            if isinstance(node, ast.Name):
                found += [(each.node, each.statement, where) for each in reaching(node.id, node, where)]
            elif isinstance(node, ast.Call):
                target = resolver_of(program).function_of(node, Value(node, where))
                found += [(*each, target[0]) for each in _handed_out(target[1])] if target is not None else []
        for each, at, here in found:
            if each not in seen:
                yield each, at
                todo.append((each, here))


def _handed_out(function: ast.AST) -> Iterator[tuple[ast.expr, ast.AST]]:
    for node in walk(function):
        if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)) and node.value is not None:
            yield node.value, node


def _is_number(value: ast.expr, file: SourceFile) -> bool:
    """Whether a value was taken out of its tensor: then it has no graph, also where nothing was caught."""
    for node in walk(value):
        if isinstance(node, ast.Call):
            if getattr(node.func, "attr", None) in _NUMBERS or getattr(node.func, "id", None) == "float":
                return True  # `logits.float()` is a tensor of another dtype
        elif isinstance(node, ast.Name):
            own = [one.node for one in bounds_of(scope_of(node, file)) if one.name == node.id and one.node is not value]
            calls = [one for one in own if isinstance(one, ast.Call) and getattr(one.func, "attr", "") in _NUMBERS]
            if calls:
                return True
    return False
