"""In-place writes of a state that a loop over time hands on: each round runs the same modules, on a tensor of before the loop.

A loop over layers is another thing, though it writes alike: `for block in self.blocks: x += block(x)` is a residual stream.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.graph.write import SUBSCRIPT, Write, find_writes
from explainer.source.loop.carried import training_loops
from explainer.source.name import Function, bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import end_of, start_of, walk
from explainer.source.value.binding import bounds_of, parameters_of, scope_of
from explainer.source.value.lineage import loops_of
from explainer.source.value.resolve import resolver_of

# What a cause of its own is about, whatever loop writes it.
_OTHERS = re.compile(r"cache|mask|bias|(?:^|_)(?:kv?|keys?|values?|param(?:eter)?s?|weights?)$", re.IGNORECASE)


def find_recurrent_writes(program: Program) -> tuple[Write, ...]:
    """The writes of a state that a loop hands from round to round, in the loop itself or in a function that it calls."""
    return program.once(_find)


def _find(program: Program) -> Iterator[Write]:
    trained = {id(loop) for _, loop, _ in training_loops(program)}
    for write in find_writes(program):
        if write.name is None or write.is_needed is False or _OTHERS.search(write.name.rpartition(".")[2]):
            continue
        places = [(write.node, write.file, write.name), *_calls(write, program)]
        if any(_is_handed_on(node, file, name, trained, write) for node, file, name in places):
            yield write


def _calls(write: Write, program: Program) -> Iterator[tuple[ast.AST, SourceFile, str]]:
    """Where the function around a write is called, and the name there of the argument that it writes."""
    function = program.names(write.file).function_of(write.node)
    if function is None or write.name not in (names := parameters_of(function)) or _is_bound(write, function):
        return
    for file, call in resolver_of(program).calls_of(function, write.file):
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        given |= dict(zip(names, call.args, strict=False))
        name = dotted_name(given.get(write.name))
        if name is not None:
            yield call, file, name


def _is_bound(write: Write, function: Function) -> bool:
    """Whether the function binds the name anew before it writes it."""
    made = (one for one in bounds_of(function) if one.name == write.name and not one.fills)
    return any(end_of(one.statement) <= start_of(write.node) for one in made)


def _is_handed_on(node: ast.AST, file: SourceFile, name: str, trained: set[int], write: Write) -> bool:
    """Whether a loop around a node runs the same modules in each round, on what the name held before it."""
    for loop in loops_of(node, file):
        if id(loop) in trained:
            return False
        bounds = [one for one in bounds_of(scope_of(loop, file)) if one.name == name and not one.fills]
        inside = set(walk(loop))
        if any(one.statement in inside and end_of(one.statement) <= start_of(node) for one in bounds):
            return False  # made anew in each round
        if not _is_over_modules(loop) and (write.kind != SUBSCRIPT or _is_read(write, name, inside)):
            return True
    return False


def _is_read(write: Write, name: str, inside: set[ast.AST]) -> bool:
    """Whether a loop reads what it writes by parts; else it fills a tensor, whose parts nobody hands on."""
    own = write.file.span(write.target)
    return any(
        dotted_name(one) == name and isinstance(getattr(one, "ctx", None), ast.Load) and write.file.span(one) != own
        for one in inside
        if isinstance(one, (ast.Name, ast.Attribute))
    )


def _is_over_modules(loop: ast.For | ast.While) -> bool:
    """Whether a loop takes other modules, or other parameters, in each round: what it walks is called, or is the object's own."""
    if not isinstance(loop, ast.For):
        return False
    targets = set(bound_names(loop))
    if any(isinstance(one, ast.Call) and dotted_name(one.func) in targets for one in walk(loop)):
        return True
    if any(_is_own(one) for one in walk(loop.iter)) and not _is_range(loop.iter):
        return True
    looked_up = (one for one in walk(loop) if isinstance(one, ast.Subscript) and _is_own(one.value))
    return any(dotted_name(node) in targets for one in looked_up for node in walk(one.slice))


def _is_own(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and (dotted_name(node) or "").startswith("self.")


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted_name(node.func) == "range"
