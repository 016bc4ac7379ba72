"""A copy for a record that takes the place of the entry which a loss reads, given a name of its own.

What a function itself does with an entry that it overwrote it does with the copy; where it goes on with the container as a whole, with
a copy of that one. What it computes a loss of is the entry as it was.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice

from explainer.fix.codemod import edit_of, insert_before, remove_statement
from explainer.fix.graph.differentiated import reaches_backward
from explainer.fix.text.import_line import import_after
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.overwritten import Overwrite, find_overwrites
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import end_of, start_of, walk
from explainer.source.value.binding import Scope, all_parameters, bounds_of, dominates, scope_of
from explainer.source.value.resolve import resolver_of

_ON_PURPOSE = re.compile(
    r"target|teacher|baseline|advantage|momentum|ema\b|frozen|freez|stop|block|anchor|reference|without grad|no grad",
    re.IGNORECASE,
)
_CHANGES = frozenset(("update", "pop", "popitem", "setdefault", "clear", "append", "extend", "insert", "remove"))
_OF_A_DICT = frozenset(("items", "keys", "values", "get"))
_DEPTH = 3  # of calls between what reads an entry and the backward
_MAX_WAYS = 32


@dataclass(frozen=True, slots=True)
class _Uses:
    """What a function does with a container behind the overwrites, but for what it computes a loss of.

    `entries` are reads of what was overwritten, each with its overwrite; `wholes` are uses of the container itself. `is_changed`
    where it writes other entries too, `is_for_loss` where a loss is computed of the container there.
    """

    entries: list[tuple[ast.expr, Overwrite]]
    wholes: list[ast.expr]
    is_changed: bool
    is_for_loss: bool


def records_at(statement: ast.stmt, file: SourceFile, program: Program) -> list[Overwrite]:
    """The overwrites whose copy a statement makes, itself or in a function that they call; not those that are meant."""
    function = program.names(file).function_of(statement)
    return [
        one
        for one in find_overwrites(program)
        if (one.file is file and statement in (one.statement, one.made)) or function in one.functions
        if not _is_meant(one)
    ]


def _is_meant(one: Overwrite) -> bool:
    """Whether words at an overwrite say that what is behind it is not to train."""
    lines = {
        number for each in (one.statement, one.made) for number in range(each.lineno - 1, (each.end_lineno or 0) + 1)
    }
    function = one.file.enclosing(one.statement, ast.FunctionDef, ast.AsyncFunctionDef)
    words = [getattr(function, "name", ""), *(one.file.line(number) for number in sorted(lines) if number)]
    return any(_ON_PURPOSE.search(word) for word in words)


def beside_entry(group: Sequence[Overwrite], program: Program) -> list[Edit]:
    """The edits for the overwrites of one container in one function; none where what is written there has other readers yet."""
    file, scope = group[0].file, scope_of(group[0].statement, group[0].file)
    uses = _uses(group, scope, program)
    if uses is None or not (uses.entries or uses.wholes):
        return []
    if not uses.wholes and all(one.entry is not None for one in group):
        return _beside(group, uses, scope, file)
    container = group[0].container
    is_plain = isinstance(container, ast.Name) and not uses.is_changed and not _is_rebound_by_callers(group[0], program)
    return _of_copy(group, uses, scope, file, program) if is_plain else []


def _uses(group: Sequence[Overwrite], scope: Scope, program: Program) -> _Uses | None:
    """How the container is used behind the first overwrite; None where an overwritten entry gets another value there."""
    file, container = group[0].file, ast.unparse(group[0].container)
    own = {one.entry: one for one in group}
    written = {
        one.statement
        for one in find_overwrites(program)
        if one.file is file and ast.unparse(one.container) == container
    }
    inside = {node for statement in written for node in walk(statement)}
    begin = min(end_of(one.statement) for one in group)
    entries: list[tuple[ast.expr, Overwrite]] = []
    wholes: list[ast.expr] = []
    is_changed = is_for_loss = False
    for node in walk(scope):
        is_use = isinstance(node, type(group[0].container)) and node not in inside and start_of(node) >= begin
        if not is_use or not isinstance(node, ast.expr) or ast.unparse(node) != container:
            continue
        above = file.parents.get(node)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            return None  # the name is given to another container
        overwritten = own.get(ast.unparse(above)) if isinstance(above, ast.expr) else None
        if overwritten is not None and isinstance(above, ast.expr):
            if not isinstance(getattr(above, "ctx", ast.Load()), ast.Load):
                return None
            if _is_for_loss(above, file, program):
                is_for_loss = True
            elif dominates(overwritten.statement, above, file):
                entries.append((above, overwritten))
            else:
                wholes.append(node)
        elif _is_change(above, file):
            is_changed = True
        elif not _is_of_others(node, above, group):
            is_read = not _is_for_loss(node, file, program)
            is_for_loss = is_for_loss or not is_read
            wholes += [node] if is_read else []
    return _Uses(entries, wholes, is_changed, is_for_loss)


def _is_change(above: ast.AST | None, file: SourceFile) -> bool:
    """Whether a use gives the container another entry, or takes one out."""
    if isinstance(above, ast.Attribute) and above.attr in _CHANGES:
        return isinstance(file.parents.get(above), ast.Call)
    return isinstance(above, (ast.Subscript, ast.Attribute)) and not isinstance(above.ctx, ast.Load)


def _is_of_others(node: ast.expr, above: ast.AST | None, group: Sequence[Overwrite]) -> bool:
    """Whether a use reads another entry than those that are overwritten, or no entry at all."""
    targets = [one.target for one in group]
    if isinstance(above, ast.Subscript) and above.value is node:
        keys = [one.slice for one in targets if isinstance(one, ast.Subscript)]
        return len(keys) == len(targets) and all(isinstance(one, ast.Constant) for one in (above.slice, *keys))
    if isinstance(above, ast.Attribute):
        return above.attr == "keys" or all(isinstance(one, ast.Attribute) for one in targets)
    is_counted = isinstance(above, ast.Call) and dotted_name(above.func) == "len"
    return is_counted or (isinstance(above, ast.Compare) and node in above.comparators)


def _is_for_loss(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether what a statement reads becomes part of a loss, there or where its function was called."""
    ways = islice(_ways(file, file.statement(node), program), _MAX_WAYS)
    return any(reaches_backward(places, program) for places in ways)


def _ways(
    file: SourceFile, statement: ast.stmt, program: Program, depth: int = 0
) -> Iterator[list[tuple[SourceFile, ast.stmt]]]:
    """A statement with those that call its function, outwards."""
    function = program.names(file).function_of(statement)
    calls = resolver_of(program).calls_of(function, file) if function is not None and depth < _DEPTH else []
    if not calls:
        yield [(file, statement)]
    for where, call in calls:
        for way in _ways(where, where.statement(call), program, depth + 1):
            yield [(file, statement), *way]


def _beside(group: Sequence[Overwrite], uses: _Uses, scope: Scope, file: SourceFile) -> list[Edit]:
    """The copy under a name of its own, and that name wherever the function reads the entry afterwards."""
    edits: list[Edit] = []
    names: dict[Overwrite, str] = {}
    for one in group:
        name = one.value.id if one.made is not one.statement and isinstance(one.value, ast.Name) else None
        if name is not None:
            edits.append(remove_statement(file, one.statement))
        else:
            name = _fresh(one, scope, taken=names.values(), is_one=len(group) == 1)
            edits.append(
                edit_of(
                    file,
                    one.target or one.statement,
                    name if one.target is not None else f"{name} = {file.segment(one.value)}",
                )
            )
        names[one] = name
    return [*edits, *(edit_of(file, node, names[one]) for node, one in uses.entries)]


def _fresh(one: Overwrite, scope: Scope, *, taken: Iterable[str] = (), is_one: bool = True) -> str:
    """A name that the function does not have: `kept`, of several `kept_height` by their keys."""
    used = {node.id for node in walk(scope) if isinstance(node, ast.Name)} | set(taken)
    used |= all_parameters(scope) if not isinstance(scope, ast.Module) else set()
    key = (
        one.target.attr
        if isinstance(one.target, ast.Attribute)
        else getattr(getattr(one.target, "slice", None), "value", "")
    )
    own = f"kept_{key}" if isinstance(key, str) and key.isidentifier() else "kept_entry"
    wanted = ["kept", own] if is_one else [own]
    return next(name for name in chain(wanted, (f"{own}_{number}" for number in count(2))) if name not in used)


def _of_copy(group: Sequence[Overwrite], uses: _Uses, scope: Scope, file: SourceFile, program: Program) -> list[Edit]:
    """The container copied before it is written: under its own name, or under another where a loss is computed of it there."""
    container = ast.unparse(group[0].container)
    name = _fresh(group[0], scope) if uses.is_for_loss else container
    kind = _kind(group, scope, file)
    written = [one for one in find_overwrites(program) if one.file is file and scope_of(one.statement, file) is scope]
    edits = [insert_before(file, _begin(group[0], scope, file), f"{name} = {kind}({container})")]
    edits += list(import_after(file, "import copy")) if kind == "copy.copy" else []
    if name != container:
        places = [one.container for one in written if ast.unparse(one.container) == container]
        places += [*uses.wholes, *(_container_of(node) for node, _ in uses.entries)]
        edits += [edit_of(file, node, name) for node in dict.fromkeys(places)]
    return edits


def _container_of(entry: ast.expr) -> ast.expr:
    """`out` of `out["h"]`, `out.h` and `getattr(out, name)`."""
    return entry.args[0] if isinstance(entry, ast.Call) else entry.value  # type: ignore[attr-defined]


def _begin(one: Overwrite, scope: Scope, file: SourceFile) -> ast.stmt:
    """The outermost loop round an overwrite through which the container stays the same; the overwrite where there is none."""
    name, begin = ast.unparse(one.container), one.statement
    bound = [each.statement for each in bounds_of(scope) if each.name == name and not each.fills]
    for above in file.around(one.statement):
        if above is scope:
            break
        if isinstance(above, (ast.For, ast.AsyncFor, ast.While)):
            inside = set(walk(above))
            if any(each in inside for each in bound):
                break
            begin = above
    return begin


def _kind(group: Sequence[Overwrite], scope: Scope, file: SourceFile) -> str:
    """What copies a container of its kind, as far as the function shows that: `dict`, `list`, else `copy.copy`."""
    name = ast.unparse(group[0].container)
    uses = [node for node in walk(scope) if isinstance(node, ast.Name) and node.id == name]
    above = [file.parents.get(node) for node in uses]
    read = {one.attr for one in above if isinstance(one, ast.Attribute)}
    if (
        any(not isinstance(one.target, ast.Subscript) and one.entry is not None for one in group)
        or read - _OF_A_DICT - _CHANGES
    ):
        return "copy.copy"
    keys = [one.slice for one in above if isinstance(one, ast.Subscript)]
    numbered = any(isinstance(one, ast.Constant) and isinstance(one.value, int) for one in keys)
    if numbered or any(isinstance(one, ast.Call) and dotted_name(one.func) == "enumerate" for one in above):
        return "list"
    is_named = any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in keys)
    return "dict" if is_named or read & (_OF_A_DICT | {"update"}) else "copy.copy"


def _is_rebound_by_callers(one: Overwrite, program: Program) -> bool:
    """Whether a caller goes on with what the function returns in the place of what it gave: `out = record(out)`."""
    function = program.names(one.file).function_of(one.statement)
    for where, call in resolver_of(program).calls_of(function, one.file) if function is not None else ():
        statement = where.statement(call)
        given = {ast.unparse(each) for each in (*call.args, *(word.value for word in call.keywords))}
        if (
            isinstance(statement, ast.Assign)
            and statement.value is call
            and given & set(map(ast.unparse, statement.targets))
        ):
            return True
    return False
