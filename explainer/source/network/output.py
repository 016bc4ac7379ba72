"""What a program reads of the outputs of a module: by words, by the elements of something, by places."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bind_call, reaching, scope_of
from explainer.source.value.resolve import resolver_of

_DEPTH = 6


@dataclass(slots=True)
class Reads:
    """`lists` are names that loops bind; `functions` the scopes that read; `is_lost` where a use was not followed."""

    words: set[str] = field(default_factory=set)
    lists: list[Value] = field(default_factory=list)
    places: list[set[int]] = field(default_factory=list)
    functions: set[ast.AST] = field(default_factory=set)
    is_lost: bool = False


def outputs_read(forward: Function, file: SourceFile, program: Program) -> Reads:
    """What the calls that run a module's `forward` read of what it returns."""
    reads = Reads()
    for where, call in resolver_of(program).calls_of(forward, file):
        _use(Value(call, where), reads, program, 0)
    return reads


def _use(value: Value, reads: Reads, program: Program, depth: int) -> None:
    """Notes what is read of a value that stands for the outputs."""
    node, file = value.node, value.file
    above = file.parents.get(node)
    reads.functions.add(scope_of(node, file))
    if isinstance(above, ast.keyword):
        above = file.parents.get(above)
    if isinstance(above, ast.Assign) and above.value is node and len(above.targets) == 1 and depth < _DEPTH:
        _bind(above, file, reads, program, depth)
    elif isinstance(above, ast.Subscript) and above.value is node:
        _look_up(above.slice, file, reads)
    elif isinstance(above, ast.Attribute) and above.attr == "get" and isinstance(file.parents.get(above), ast.Call):
        _look_up(file.parents[above].args[0], file, reads)  # type: ignore[attr-defined]
    elif isinstance(above, ast.Call) and above.func is not node and depth < _DEPTH:
        _hand_over(value, above, reads, program, depth)
    elif not isinstance(above, ast.Expr):
        reads.is_lost = True


def _bind(statement: ast.Assign, file: SourceFile, reads: Reads, program: Program, depth: int) -> None:
    target = statement.targets[0]
    if isinstance(target, ast.Tuple) and all(isinstance(one, ast.Name) for one in target.elts):
        names = [one.id for one in target.elts if isinstance(one, ast.Name)]
        reads.places.append({place for place, one in enumerate(names) if not one.startswith("_")})
        reads.is_lost |= any(one.startswith("_") and _loads(one, scope_of(statement, file)) for one in names)
    elif isinstance(target, ast.Name):
        for one in _loads(target.id, scope_of(statement, file)):
            made = [bound.statement for bound in reaching(target.id, one, file)]
            if statement in made:
                _use(Value(one, file), reads, program, depth + 1)
            reads.is_lost |= scope_of(one, file) is not scope_of(statement, file)
    else:
        reads.is_lost = True


def _look_up(key: ast.expr, file: SourceFile, reads: Reads) -> None:
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        reads.words.add(key.value)
    elif isinstance(key, ast.Constant) and isinstance(key.value, int) and key.value >= 0:
        reads.places.append({key.value})
    elif isinstance(key, ast.Name):
        reads.lists.append(Value(key, file))
    else:
        reads.is_lost = True


def _hand_over(value: Value, call: ast.Call, reads: Reads, program: Program, depth: int) -> None:
    """Follows the outputs into a function of the program, or a criterion's `forward`."""
    resolver, near = resolver_of(program), Value(call, value.file)
    named = resolver.function_of(call, near)
    owners = resolver.classes_of(Value(call.func, value.file)) if named is None else []
    targets = [named] if named is not None else [resolver.method(one, "forward", where) for where, one in owners]
    reads.is_lost |= not targets or None in targets
    for file, function in (one for one in targets if one is not None):
        names = [name for name, one in bind_call(call, function, near).items() if one.node is value.node]
        reads.is_lost |= len(names) != 1
        for one in (each for name in names for each in _loads(name, function)):
            reads.is_lost |= bool(reaching(one.id, one, file))
            _use(Value(one, file), reads, program, depth + 1)


def _loads(name: str, scope: ast.AST) -> list[ast.Name]:
    return [
        one for one in walk(scope) if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
    ]
