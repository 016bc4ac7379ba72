"""What a number of rows or classes is taken from: the highest code in some data, how many of something there are, a setting.

Followed through names, arguments, attributes and functions of the program to the expression that measures, or to what is written.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.setting.flow import settings_behind
from explainer.source.text import TextFile
from explainer.source.value.binding import Value
from explainer.source.value.origin import origins
from explainer.source.value.resolve import resolver_of

HIGHEST, COUNT, WRITTEN = "highest", "count", "written"
_DEPTH = 12
_SAME = frozenset({"int", "float", "round", "ceil", "item", "astype", "to", "cpu", "long", "tolist"})
_HIGHEST = frozenset({"max", "amax", "nanmax"})
_COUNTS = frozenset({"nunique", "n_unique", "numel"})
_LITERALS = (ast.List, ast.Tuple, ast.Set, ast.Dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Where a number is taken from, by its span in a file; `of` is what is measured as it is written, or the setting's name.

    `number` is what a setting says.
    """

    file: TextFile
    span: tuple[int, int]
    kind: str
    of: str
    number: int | None = None

    @property
    def line(self) -> int:
        """The line at which it begins."""
        return self.file.line_of(self.span[0])


def measure_of(value: Value, program: Program) -> Measure | None:
    """The one place that a number is taken from; None where there are several, or none that is known."""
    found = {(one.file.path, one.span): one for one in _measures(value, program, 0)}
    return next(iter(found.values())) if len(found) == 1 else None


def _measures(value: Value, program: Program, depth: int) -> Iterator[Measure]:
    node = value.node
    if depth > _DEPTH:
        return
    if isinstance(node, (ast.BinOp, ast.IfExp, ast.BoolOp)):
        for part in _parts(node):
            yield from _measures(replace(value, node=part), program, depth + 1)
    elif isinstance(node, ast.Call):
        yield from _called(node, value, program, depth)
    elif isinstance(node, ast.Subscript) and _is_shape(node.value):
        assert isinstance(node.value, ast.Attribute)
        yield _measure(value, COUNT, node.value.value)
    elif dotted_name(node) is not None and (behind := list(resolver_of(program).behind(value))):
        for one in behind:
            for made in [one] if one.pick is None else origins(one, program):
                if isinstance(made.node, ast.Constant) and type(made.node.value) is int:
                    yield _measure(made, WRITTEN, node)
                elif made.pick is None and not made.is_element:
                    yield from _measures(made, program, depth + 1)
    elif not isinstance(node, ast.Constant):
        yield from _settings(node, value.file, program)


def _parts(node: ast.BinOp | ast.IfExp | ast.BoolOp) -> list[ast.expr]:
    """What a number is computed of, without the numbers that are written there."""
    parts = (
        [node.left, node.right]
        if isinstance(node, ast.BinOp)
        else [node.body, node.orelse]
        if isinstance(node, ast.IfExp)
        else node.values
    )
    return [one for one in parts if not isinstance(one, ast.Constant)]


def _called(node: ast.Call, value: Value, program: Program, depth: int) -> Iterator[Measure]:
    name = (dotted_name(node.func) or "").rpartition(".")[2] or str(getattr(node.func, "attr", ""))
    base = node.func.value if isinstance(node.func, ast.Attribute) else None
    is_method = base is not None and not _is_library(base, value.file, program)
    given = base if is_method else node.args[0] if node.args else None
    if name == "len" and given is not None:
        yield _of_length(given, value, program)
    elif name in _HIGHEST and given is not None:
        many = node.args if base is None and len(node.args) > 1 else []
        for one in many:
            if not isinstance(one, ast.Constant):
                yield from _measures(replace(value, node=one), program, depth + 1)
        if not many:
            yield _measure(value, HIGHEST, given)
    elif (name in _COUNTS or (name == "size" and node.args)) and given is not None:
        yield _measure(value, COUNT, given)
    elif name in _SAME and given is not None:
        yield from _measures(replace(value, node=given), program, depth + 1)
    elif (function := resolver_of(program).function_of(node, value)) is not None:
        for result in resolver_of(program).returns_of(function, node, value):
            yield from _measures(result, program, depth + 1)
    else:
        yield from _settings(node, value.file, program)


def _of_length(given: ast.expr, value: Value, program: Program) -> Measure:
    """A length: of a list that is written out, the list."""
    listed = [one for one in resolver_of(program).behind(replace(value, node=given)) if one.pick is None]
    if len(listed) == 1 and isinstance(listed[0].node, _LITERALS) and ast.unparse(listed[0].node) not in ("[]", "{}"):
        return Measure(
            file=listed[0].file, span=listed[0].file.span(listed[0].node), kind=WRITTEN, of=ast.unparse(given)
        )
    return _measure(value, COUNT, given)


def _measure(value: Value, kind: str, of: ast.expr) -> Measure:
    return Measure(file=value.file, span=value.file.span(value.node), kind=kind, of=ast.unparse(of))


def _settings(node: ast.expr, file: SourceFile, program: Program) -> Iterator[Measure]:
    for one in settings_behind(node, file, program):
        number = one.value if type(one.value) is int else None
        span = (one.key or one.span)[0], one.span[1]
        yield Measure(file=one.file, span=span, kind=WRITTEN, of=one.name, number=number)


def _is_shape(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _is_library(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a name is a module that is imported: `np`, `torch`."""
    return isinstance(node, ast.Name) and node.id in program.names(file).imports
