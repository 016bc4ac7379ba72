"""The segments of activation checkpointing: the calls that checkpoint, their form, and the functions that a segment runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.graph.segment_code import may_run_in_model
from explainer.source.graph.write import find_writes
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.value.binding import Value, walk_scope
from explainer.source.value.resolve import resolver_of

FORM = "use_reentrant"
_CHECKPOINTS = ("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential")


@dataclass(frozen=True)
class Segment:
    """One place that chooses the form of checkpointing: a call of `checkpoint`, or the value of `use_reentrant` in a mapping.

    `form` is the expression of `use_reentrant`, None where a call leaves it out; `body` is what a call checkpoints.
    """

    file: SourceFile
    node: ast.expr
    form: ast.expr | None
    body: ast.expr | None = None

    @property
    def is_call(self) -> bool:
        """Whether it is a call of `checkpoint` or a partial one."""
        return isinstance(self.node, ast.Call)


def find_segments(program: Program) -> Iterator[Segment]:
    """Every such place, file by file."""
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            if isinstance(node, ast.Call):
                partial = names.is_call(node, "functools.partial") and bool(node.args)
                called = names.qualified(node.args[0] if partial else node.func)
                if called in _CHECKPOINTS:
                    form = next((one.value for one in node.keywords if one.arg == FORM), None)
                    body = node.args[0] if node.args and not partial else None
                    yield Segment(file, node, form, body)
                elif any(one.arg == FORM for one in node.keywords):
                    yield Segment(file, node, next(one.value for one in node.keywords if one.arg == FORM))
            elif isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == FORM:
                        yield Segment(file, value, value)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
                key = node.targets[0].slice  # `options["use_reentrant"] = True`
                if isinstance(key, ast.Constant) and key.value == FORM:
                    yield Segment(file, node.value, node.value)


def writes_in_place(segment: Segment, program: Program) -> bool:
    """Whether a function that the segment runs writes a tensor in place that a backward may need.

    The non-reentrant form does not notice such a write and can compute wrong gradients.
    """
    if segment.body is None:  # a library chooses what is checkpointed
        return any(one.is_needed and may_run_in_model(one.node, one.file, program) for one in find_writes(program))
    run = functions_run_by(segment, program)
    return any(
        program.names(write.file).function_of(write.node) in run
        for write in find_writes(program)
        if write.is_needed is not None
    )


def functions_run_by(segment: Segment, program: Program) -> dict[Function, SourceFile]:
    """The functions of the program that a segment runs, through calls and modules, each with its file."""
    run: dict[Function, SourceFile] = {}
    todo: list[tuple[SourceFile, Function]] = []
    if segment.body is not None:
        inner = ast.copy_location(ast.Call(func=segment.body, args=[], keywords=[]), segment.node)
        todo += _targets(inner, segment.file, program)
    while todo:
        file, function = todo.pop()
        if function in run:
            continue
        run[function] = file
        for node in walk_scope(function):
            if isinstance(node, ast.Call):
                todo += _targets(node, file, program)
    return run


def _targets(node: ast.Call, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, Function]]:
    resolver = resolver_of(program)
    if isinstance(node.func, ast.Name):
        found = resolver.function_of(node, Value(node, file))
        if found is not None:
            yield found
            return
    elif node in file.parents and (found := resolver.function_of(node, Value(node, file))) is not None:
        yield found
        return
    for where, owner in resolver.classes_of(Value(node.func, file)):
        method = resolver.method(owner, "forward", where)
        if method is not None:
            yield method
