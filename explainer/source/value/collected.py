"""Where a program collected, step by step, what an expression hands on: `torch.stack(self.logp)`, the columns of its rows.

    self.steps.append((obs, logp))
    obs, logp = (torch.stack(part) for part in zip(*self.steps))

Seen through the calls that only join or lay out anew, the names of a function, its arguments, and rows that are taken apart.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import Value, scope_of
from explainer.source.value.kept import Kept, find_kept, is_append, name_read
from explainer.source.value.record import record_of
from explainer.source.value.resolve import resolver_of

_DEPTH = 8
_JOINS = frozenset(
    {"stack", "cat", "concat", "concatenate", "hstack", "vstack", "tensor", "as_tensor", "list", "tuple", "squeeze"}
    | {"flatten", "reshape", "log", "sum"}
)
_LAYS_OUT = frozenset(
    {
        "flatten",
        "reshape",
        "view",
        "squeeze",
        "unsqueeze",
        "to",
        "float",
        "double",
        "cpu",
        "cuda",
        "contiguous",
        "clone",
    }
    | {"transpose", "permute", "swapaxes", "t", "log", "sum", "view_as", "reshape_as", "expand", "expand_as", "clamp"}
    | {"index_select", "split", "chunk", "copy"}
)


def find_collected(value: Value, program: Program, depth: int = 0) -> Iterator[Kept]:
    """What was appended, or written entry by entry, to the lists that an expression joins; nothing where that is not known."""
    if depth > _DEPTH:
        return
    node = handed_on(value.node, value.file, program)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        yield from _of_comprehension(node, value, program, depth)
    elif isinstance(node, ast.Name):
        yield from _of_name(node, value, program, depth)
    elif isinstance(node, (ast.Attribute, ast.Subscript)):
        yield from _of_name_read(node, program, depth)


def handed_on(node: ast.expr, file: SourceFile, program: Program) -> ast.expr:
    """What an expression only joins, lays out anew or takes rows of: `self.logp` of `torch.stack(self.logp).flatten()[rows]`."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
            called = program.names(file).qualified(node.func) or ""
            is_library = called.startswith("torch.") or called in ("list", "tuple")
            if is_library and called.rpartition(".")[2] in _JOINS and node.args:
                node = node.args[0]
                continue
            if not is_library and isinstance(node.func, ast.Attribute) and node.func.attr in _LAYS_OUT:
                node = node.func.value
                continue
        elif isinstance(node, ast.Subscript) and _key(node) is None:
            node = node.value
            continue
        return node


def _key(node: ast.Subscript) -> str | int | None:
    """The entry that a subscript reads; None for rows and slices."""
    return (
        node.slice.value if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, (str, int)) else None
    )


def _of_name_read(node: ast.Attribute | ast.Subscript, program: Program, depth: int) -> Iterator[Kept]:
    """What is kept under an attribute or a key; an entry that hands on what was collected elsewhere is followed there."""
    name = name_read(node)
    kept = list(find_kept({name}, program)) if name is not None else []
    grown = [one for one in kept if one.is_appended]
    for one in grown or kept:
        further = [] if one.is_appended else list(find_collected(Value(one.value, one.file), program, depth + 1))
        yield from further or [one]


def _of_name(node: ast.Name, value: Value, program: Program, depth: int) -> Iterator[Kept]:
    for one in resolver_of(program).behind(Value(node, value.file, value.arguments)):
        targets = one.statement.targets if isinstance(one.statement, ast.Assign) else []
        is_appended = isinstance(one.statement, ast.Call) and is_append(one.statement)
        if is_appended or any(_fills(target, node.id) for target in targets):
            yield Kept(file=one.file, name=node.id, value=one.node, is_appended=is_appended)
        elif isinstance(one.pick, int):
            yield from _of_column(one, one.pick, program, depth)
        elif not isinstance(one.statement, (ast.With, ast.AsyncWith, ast.Call)):
            yield from find_collected(one, program, depth + 1)


def _fills(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Subscript) and dotted_name(target.value) == name


def _of_comprehension(
    node: ast.ListComp | ast.GeneratorExp, value: Value, program: Program, depth: int
) -> Iterator[Kept]:
    """`[step.logp for step in steps]`, `[step[2] for step in steps]`, `[logp for _, _, logp in steps]`."""
    elt = handed_on(node.elt, value.file, program)
    rows = node.generators[0]
    if isinstance(elt, ast.Subscript) and isinstance(place := _key(elt), int):
        if ast.unparse(elt.value) == ast.unparse(rows.target):
            yield from _of_rows(Value(rows.iter, value.file, value.arguments), place, program, depth)
    elif isinstance(elt, ast.Name) and isinstance(rows.target, ast.Tuple):
        names = [getattr(one, "id", None) for one in rows.target.elts]
        if elt.id in names:
            yield from _of_rows(Value(rows.iter, value.file, value.arguments), names.index(elt.id), program, depth)
    elif isinstance(elt, ast.Name):
        yield from find_collected(Value(rows.iter, value.file, value.arguments), program, depth + 1)
    else:
        yield from find_collected(Value(elt, value.file, value.arguments), program, depth + 1)


def _of_column(value: Value, place: int, program: Program, depth: int) -> Iterator[Kept]:
    """What one place of an unpacked value hands on: `obs, logp = zip(*rows)`, `for obs, logp in rows`, `batch()` that returns them."""
    node = value.node
    if value.is_element:
        yield from _of_rows(value, place, program, depth)
        return
    rows = _zipped(node, value.file, program)
    if rows is not None:
        yield from _of_rows(Value(rows, value.file, value.arguments), place, program, depth)
    elif isinstance(node, ast.Call):
        function = resolver_of(program).function_of(node, value)
        for one in resolver_of(program).returns_of(function, node, value) if function is not None else ():
            yield from _of_part(one, place, program, depth + 1)
    elif (parts := _mapped(node)) is not None and place < len(parts):
        yield from find_collected(Value(parts[place], value.file, value.arguments), program, depth + 1)


def _of_part(value: Value, place: int, program: Program, depth: int) -> Iterator[Kept]:
    """One place of what a function returns, also where that has a name."""
    if isinstance(value.node, ast.Tuple) and place < len(value.node.elts):
        yield from find_collected(Value(value.node.elts[place], value.file, value.arguments), program, depth)
    elif isinstance(value.node, ast.Name) and depth <= _DEPTH:
        for one in resolver_of(program).behind(value):
            yield from _of_part(one, place, program, depth + 1)
    elif depth <= _DEPTH:
        yield from _of_column(value, place, program, depth)


def _mapped(node: ast.expr) -> list[ast.expr] | None:
    """The parts that a comprehension treats alike: `(torch.stack(one) for one in (obs, logp))`."""
    parts = node.generators[0].iter if isinstance(node, (ast.ListComp, ast.GeneratorExp)) else node
    return parts.elts if isinstance(parts, (ast.Tuple, ast.List)) else None


def _zipped(node: ast.expr, file: SourceFile, program: Program) -> ast.expr | None:
    """`rows` of `zip(*rows)`, also where each column goes through one function: `map(torch.stack, zip(*rows))`."""
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and len(node.generators) == 1:
        return _zipped(node.generators[0].iter, file, program)
    if not isinstance(node, ast.Call):
        return None
    called = program.names(file).qualified(node.func) or dotted_name(node.func)
    if called == "map" and len(node.args) == 2:
        return _zipped(node.args[1], file, program)
    if called in ("list", "tuple") and node.args:
        return _zipped(node.args[0], file, program)
    is_zip = called == "zip" and len(node.args) == 1 and isinstance(node.args[0], ast.Starred)
    return node.args[0].value if is_zip and isinstance(node.args[0], ast.Starred) else None


def _of_rows(rows: Value, place: int, program: Program, depth: int) -> Iterator[Kept]:
    """What stands at one place of the rows that were appended to a list."""
    for one in _appended(rows, program, depth):
        row = one.value
        if isinstance(row, (ast.Tuple, ast.List)) and place < len(row.elts):
            yield Kept(file=one.file, name=one.name, value=row.elts[place], is_appended=True)
        elif isinstance(row, ast.Call):
            given = _field(row, one.file, place, program)
            if given is not None:
                yield Kept(file=one.file, name=one.name, value=given, is_appended=True)
        elif isinstance(row, ast.Name):
            yield from _given(row, one, place, program)


def _field(row: ast.Call, file: SourceFile, place: int, program: Program) -> ast.expr | None:
    """What a record, which is a tuple as well, is given at one place."""
    record = record_of(Value(row.func, file), resolver_of(program))
    if record is None or record.kind != "named" or any(isinstance(one, ast.Starred) for one in row.args):
        return None
    if place < len(row.args):
        return row.args[place]
    name = record.fields[place] if place < len(record.fields) else None
    return next((one.value for one in row.keywords if one.arg == name and name is not None), None)


def _given(row: ast.Name, kept: Kept, place: int, program: Program) -> Iterator[Kept]:
    """What the callers give by place, where a method appends all that it is given: `def add(self, *step)`."""
    scope = scope_of(row, kept.file)
    if isinstance(scope, (ast.Module, ast.Lambda)):
        return
    if scope.args.vararg is not None and scope.args.vararg.arg == row.id:
        for file, call in resolver_of(program).calls_of(scope, kept.file):
            if place < len(call.args) and not any(isinstance(one, ast.Starred) for one in call.args):
                yield Kept(file=file, name=kept.name, value=call.args[place], is_appended=True)
        return
    for one in resolver_of(program).behind(Value(row, kept.file)):
        if isinstance(one.node, ast.Tuple) and place < len(one.node.elts) and one.pick is None:
            yield Kept(file=one.file, name=kept.name, value=one.node.elts[place], is_appended=True)


def _appended(rows: Value, program: Program, depth: int) -> Iterator[Kept]:
    """The rows that a list grows by, whatever it is called where it is handed on."""
    node = handed_on(rows.node, rows.file, program)
    if isinstance(node, ast.Name):
        for one in resolver_of(program).behind(Value(node, rows.file, rows.arguments)) if depth <= _DEPTH else ():
            if isinstance(one.statement, ast.Call):
                if is_append(one.statement):
                    yield Kept(file=one.file, name=node.id, value=one.node, is_appended=True)
            elif isinstance(one.node, ast.Call) and one.pick is None:
                yield from _returned_rows(one, program, depth)
            elif one.pick is None:
                yield from _appended(one, program, depth + 1)
    elif (name := name_read(node)) is not None and isinstance(node, (ast.Attribute, ast.Subscript)):
        yield from (one for one in find_kept({name}, program) if one.is_appended)


def _returned_rows(value: Value, program: Program, depth: int) -> Iterator[Kept]:
    """`rows = collect(policy)`: the rows of the list that a function fills and gives back."""
    assert isinstance(value.node, ast.Call)
    function = resolver_of(program).function_of(value.node, value)
    for one in resolver_of(program).returns_of(function, value.node, value) if function is not None else ():
        yield from _appended(one, program, depth + 1)
