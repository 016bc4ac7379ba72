"""From a flag to where `bool` makes it of text: `settings.freeze` to the `bool` of `flag("FREEZE", bool, "0")`.

`bool` of any word but an empty one is true, so that `"0"`, `"no"` and `"false"` read as yes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.setting.held import field_default, held_by, returned_by
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_DEPTH = 14
_MOST = 600  # steps from one flag: a large program is read in part


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """A place where `bool` makes a flag of `text`: the call, or the name `bool` where another function gets it to call it."""

    file: SourceFile
    node: ast.expr
    text: Value

    @property
    def is_handed(self) -> bool:
        """Whether the name alone is written, for another to call."""
        return isinstance(self.node, ast.Name)


def casts_behind(flag: Value, program: Program, *, is_true: bool = True) -> list[Cast]:
    """The casts that make an expression true, or false where it is asked for that: `not flag` is false by a flag that is true."""
    return list(_Flow(program).casts(flag, is_true=is_true))


def casts_at(cast: Cast, program: Program) -> list[Cast]:
    """What goes through the same place: a helper reads the flags of all its calls."""
    function = cast.file.enclosing(cast.node, ast.FunctionDef, ast.AsyncFunctionDef)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [cast]
    calls = resolver_of(program).calls_of(function, cast.file)
    read = [one for where, call in calls for one in casts_behind(Value(call, where), program)]
    return [one for one in read if one.node is cast.node] or [cast]


class _Flow:
    """Follows a flag back; the number of steps is bounded."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.steps = 0

    def casts(self, value: Value, *, is_true: bool, depth: int = 0) -> Iterator[Cast]:
        """The casts by which an expression gets a truth."""
        self.steps += 1
        if depth > _DEPTH or self.steps > _MOST:
            return
        node = value.node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield from self.casts(replace(value, node=node.operand), is_true=not is_true, depth=depth + 1)
        elif isinstance(node, ast.BoolOp):
            for one in node.values:
                yield from self.casts(replace(value, node=one), is_true=is_true, depth=depth + 1)
        elif isinstance(node, ast.IfExp):
            yield from self._choice(node, value, is_true=is_true, depth=depth)
        elif isinstance(node, ast.Call):
            yield from self._called(node, value, is_true=is_true, depth=depth)
        elif isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            yield from self._held(value, is_true=is_true, depth=depth)

    def _choice(self, node: ast.IfExp, value: Value, *, is_true: bool, depth: int) -> Iterator[Cast]:
        """`False if frozen else True`: by what it asks, where it chooses between constants."""
        parts = (node.body, node.orelse)
        states = [bool(one.value) if isinstance(one, ast.Constant) else None for one in parts]
        if states[0] is not None and states[1] is not None and states[0] != states[1]:
            yield from self.casts(replace(value, node=node.test), is_true=states[0] is is_true, depth=depth + 1)
        for one in parts:
            yield from self.casts(replace(value, node=one), is_true=is_true, depth=depth + 1)

    def _called(self, node: ast.Call, value: Value, *, is_true: bool, depth: int) -> Iterator[Cast]:
        cast = self._cast(replace(value, node=node.func)) if len(node.args) == 1 and not node.keywords else None
        if cast is not None and is_bool(cast, self.program):
            text = replace(value, node=node.args[0])
            if is_true:
                is_here = cast.node is node.func
                yield Cast(file=cast.file, node=node if is_here else cast.node, text=text)
            yield from self.casts(text, is_true=is_true, depth=depth + 1)
            return
        made = [*returned_by(node, value, self.program), *field_default(value, self.program)]
        if not made and cast is not None and cast.node is not node.func:
            made = list(_applied(cast, node, value, self.program))
        for one in made or held_by(value, self.program):
            yield from self.casts(one, is_true=is_true, depth=depth + 1)

    def _held(self, value: Value, *, is_true: bool, depth: int) -> Iterator[Cast]:
        for one in held_by(value, self.program):
            option = _option(one, self.program) if is_true else None
            if option is not None:
                yield option
            yield from self.casts(one, is_true=is_true, depth=depth + 1)

    def _cast(self, func: Value) -> Value | None:
        """What is called, by the name under which it is written last: a function that a parameter or a table stands for."""
        for _ in range(_DEPTH):
            if is_bool(func, self.program):
                return func
            found = list(held_by(func, self.program)) if isinstance(func.node, (ast.Name, ast.Subscript)) else []
            if len(found) != 1:
                break
            func = found[0]
        return func


def is_bool(value: Value, program: Program) -> bool:
    """Whether a name is Python's own `bool`."""
    if not isinstance(value.node, ast.Name) or value.node.id != "bool":
        return False
    names = program.names(value.file)
    is_own = any(one.name == "bool" for one in names.functions) or "bool" in names.classes
    return names.qualified(value.node) == "bool" and not is_own


def _applied(cast: Value, call: ast.Call, value: Value, program: Program) -> Iterator[Value]:
    """What a function that was handed over makes of the text: `lambda text: bool(text)`, `to_flag`."""
    if isinstance(cast.node, ast.Lambda):
        names = [one.arg for one in cast.node.args.args]
        given = {name: replace(value, node=one) for name, one in zip(names, call.args, strict=False)}
        yield replace(cast, node=cast.node.body, arguments={**cast.arguments, **given})
    else:
        yield from returned_by(call, value, program, by=cast)


def _option(value: Value, program: Program) -> Cast | None:
    """`add_argument("--freeze", type=bool, default=os.environ.get("FREEZE", "0"))`: argparse reads a default that is text, too."""
    above = value.file.parents.get(value.node)
    call = value.file.parents.get(above) if isinstance(above, ast.keyword) and above.arg == "default" else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "add_argument":
        return None
    kind = next((one.value for one in call.keywords if one.arg == "type"), None)
    is_cast = kind is not None and is_bool(replace(value, node=kind), program)
    return Cast(file=value.file, node=kind, text=value) if is_cast and kind is not None else None
