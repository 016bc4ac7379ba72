"""Sums and lists that a program fills for one backward and that nothing empties before the next: their graphs pile up.

`total += loss` for four batches, `policy.log_probs.append(...)` for an episode; then one backward for all of them. The next
one goes through what the first has freed. What is filled and used up in the same round is none of these.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from explainer.source.file import SourceFile
from explainer.source.loop.backward import Backward, find_backwards
from explainer.source.loop.carried import holds_graph
from explainer.source.loop.filling import ADDS, MAKES, Key, Use, find_uses, key_of
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.flow import arguments_of
from explainer.source.value.lineage import binds, block_of, loop_of, loops_of, reads, sources
from explainer.source.value.resolve import resolver_of

_DRAWS = frozenset({"sample", "choice", "choices", "randint", "shuffle"})
_DEPTH = 3
Place = Function | ast.Module
_Read = tuple[SourceFile, ast.expr]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pile:
    """What `backward` goes through and nothing empties, with the lists that are filled beside it for the same loss.

    `block` are the statements that are done for each backward: after the last of them that holds one of `spots` nothing reads
    the pile any more, and it may start anew.
    `loop` is the loop whose rounds end with the backward, where one stands around both in one function.
    """

    added: tuple[Use, ...]
    made: tuple[Use, ...]
    reads: tuple[ast.expr, ...]
    spots: frozenset[ast.AST]
    backward: Backward
    block: Sequence[ast.stmt]
    loop: ast.For | ast.While | None
    is_list: bool
    carries_graph: bool
    emptied_by: Function | None = None
    is_read_later: bool = False
    beside: tuple[Pile, ...] = ()


def find_piles(program: Program) -> tuple[Pile, ...]:
    """Every pile of graphs of a program."""
    return program.once(_piles)


def _piles(program: Program) -> Iterator[Pile]:
    uses = find_uses(program)
    read = _reads(uses, program)
    for backward in find_backwards(program):
        found = [one for key, each in uses.items() if (one := _pile(each, read[key], backward, program)) is not None]
        for one in found:
            if one.carries_graph:
                beside = [other for other in found if other is not one and _is_beside(other, one, program)]
                yield replace(one, beside=tuple(beside))


def _pile(uses: Sequence[Use], read_at: Sequence[_Read], backward: Backward, program: Program) -> Pile | None:
    added = tuple(one for one in uses if one.kind == ADDS)
    file, place = backward.file, _place(backward.statement, backward.file, program)
    near = [one.statement for one in added if one.file is file and _place(one.statement, file, program) is place]
    loop = next((one for one in loops_of(backward.statement, file) if _holds(one, near)), None)
    block = _block(near, backward, loop or place) if near else _whole(backward, place)
    made = tuple(one for one in uses if one.kind == MAKES and not _is_in(one, loop))
    is_list = isinstance(added[0].statement, ast.Expr)
    if not block or not made or is_list != all(_is_empty_list(one.value) for one in made):
        return None
    if len({_owner(one, program) for one in made}) > 1:
        return None
    loads = list(_loads(read_at, [one for one in uses if one.kind != MAKES]))
    inside = {node for statement in block for node in walk(statement)}
    read = tuple(node for where, node in loads if node in inside and not _is_value_only(node, where))
    if not read or min(one.lineno for one in read) > (backward.call.end_lineno or 0):
        return None
    emptied = list(_emptied(uses, loop, program))  # behind what costs less: it asks who calls what
    if None in emptied or len(set(emptied)) > 1:
        return None
    if any(_is_drawn_from(node, where) for where, node in loads) or any(
        _is_kept(one, backward, program) for one in added
    ):
        return None
    spots: set[ast.AST] = {node for _, node in loads if node in inside}
    later = False
    for where, node in loads:
        if node not in inside and (called := _calls_around(node, where, program)) and called <= inside:
            spots |= called
        elif node not in inside:
            later = later or _is_later(where, node, block, backward, program)
    return Pile(
        added=added, made=made, reads=read, spots=frozenset(spots), backward=backward, block=block, loop=loop, is_list=is_list,
        carries_graph=any(
            one.value is not None and holds_graph(one.value, one.statement, one.file, program) for one in added
        ), emptied_by=next(iter(emptied), None),
        is_read_later=later,
    )  # fmt: skip


def _calls_around(node: ast.AST, file: SourceFile, program: Program) -> set[ast.AST]:
    """The calls of the function in which a node stands."""
    function = program.names(file).function_of(node)
    return {call for _, call in resolver_of(program).calls_of(function, file)} if function is not None else set()


def _place(node: ast.AST, file: SourceFile, program: Program) -> Place | None:
    return program.names(file).function_of(node) or file.tree


def _holds(outer: ast.AST, statements: Sequence[ast.stmt]) -> bool:
    return any(one in set(walk(outer)) for one in statements)


def _is_in(use: Use, loop: ast.AST | None) -> bool:
    return loop is not None and use.statement in set(walk(loop))


def _whole(backward: Backward, place: Place | None) -> Sequence[ast.stmt]:
    """What is done for each backward where the pile is filled elsewhere: the function's body, or a round of the file's loop."""
    if isinstance(place, ast.Module):
        around = list(loops_of(backward.statement, backward.file))
        return around[-1].body if around else ()
    return place.body if place is not None else ()


def _block(near: Sequence[ast.stmt], backward: Backward, boundary: ast.AST | None) -> Sequence[ast.stmt]:
    """The statements that are done more seldom than the pile is filled; () where both are done once a round."""
    file, inner = backward.file, backward.statement
    found: Sequence[ast.stmt] = ()
    above = file.parents.get(inner)
    while above is not None and above is not boundary:
        if isinstance(above, ast.If) and not _holds(above, near):
            found = block_of(inner, file)
        inner, above = above if isinstance(above, ast.stmt) else inner, file.parents.get(above)
    if found:
        return found
    is_nested = any(file.parents.get(one) is not boundary for one in near)
    return getattr(boundary, "body", ()) if is_nested and isinstance(boundary, (ast.For, ast.While)) else ()


def _is_empty_list(value: ast.expr | None) -> bool:
    """`[]`, `list()`, or a dataclass's `field(default_factory=list)`."""
    if isinstance(value, ast.Call):
        last = (dotted_name(value.func) or "").rpartition(".")[2]
        factory = next((one.value for one in value.keywords if one.arg == "default_factory"), None)
        return (last == "list" and not value.args) or (last == "field" and dotted_name(factory) == "list")
    return isinstance(value, ast.List) and not value.elts


def _owner(use: Use, program: Program) -> ast.AST | None:
    return program.names(use.file).class_of(use.statement)


def _emptied(uses: Sequence[Use], loop: ast.AST | None, program: Program) -> Iterator[Function | None]:
    """The methods that would empty the pile and that nothing calls; None for each place where it is emptied indeed."""
    for one in uses:
        if one.kind == ADDS:
            continue
        function = program.names(one.file).function_of(one.statement)
        is_beginning = function is None or function.name == "__init__" or (one.kind == MAKES and loop is not None)
        if (
            is_beginning
            and one.kind == MAKES
            and not _is_in(one, loop)
            and loop_of(one.statement, one.file) in (None, *_around(loop, one.file))
        ):
            continue
        if function is None or function.name == "__init__" or _owner(one, program) is None:
            yield None
            continue
        calls = resolver_of(program).calls_of(function, one.file)
        called = [
            call for where, call in calls if getattr(program.names(where).function_of(call), "name", "") != "__init__"
        ]
        yield None if called or len(function.args.args) != 1 else function


def _around(loop: ast.AST | None, file: SourceFile) -> tuple[ast.AST, ...]:
    return tuple(loops_of(loop, file)) if loop is not None else ()


def _reads(keys: Iterable[Key], program: Program) -> dict[Key, list[_Read]]:
    """Where each of some names and attributes is read."""
    found: dict[Key, list[_Read]] = {key: [] for key in keys}
    for kind, name in {(key[0], str(key[1]) if key[0] == "attribute" else "") for key in found}:
        for file in program.parsed():
            named = file.attributes.get(name, ()) if name else file.plain_names.get(kind.partition(" ")[2], ())
            for node in named:
                key = key_of(node, file, program) if isinstance(getattr(node, "ctx", None), ast.Load) else None
                if key in found:
                    found[key].append((file, node))
    return found


def _loads(read_at: Sequence[_Read], uses: Sequence[Use]) -> Iterator[_Read]:
    """Where a pile is read: not where it is added to or emptied, nor where only its length is asked for."""
    own = {node for one in uses for node in walk(one.statement)}
    for file, node in read_at:
        above = file.parents.get(node)
        is_length = isinstance(above, ast.Call) and dotted_name(above.func) == "len"
        if node not in own and not is_length:
            yield file, node


def _is_value_only(node: ast.expr, file: SourceFile) -> bool:
    """`total.item()`: no gradient goes through it."""
    above = file.parents.get(node)
    return isinstance(above, ast.Attribute) and above.attr in ("item", "detach", "data", "tolist")


def _is_drawn_from(node: ast.expr, file: SourceFile) -> bool:
    """`random.sample(self.memory, 32)`: a memory is to keep what it holds."""
    above = file.parents.get(node)
    return isinstance(above, ast.Call) and (dotted_name(above.func) or "").rpartition(".")[2] in _DRAWS


def _is_kept(use: Use, backward: Backward, program: Program) -> bool:
    """Whether a bank keeps what a step has used, or is done with: it is to last, and what it holds is to be detached."""
    place = _place(backward.statement, backward.file, program)
    for file, statement, value in _given(use, program):
        if file is not backward.file or _place(statement, file, program) is not place:
            continue
        if statement.lineno > (backward.statement.end_lineno or 0) and statement in block_of(backward.statement, file):
            return True
        around = loop_of(statement, file) or place
        here = {name for one in walk(around) if isinstance(one, ast.Assign) for name in binds(one)} if around else set()
        names = reads(value) & here
        lines = sources(backward.loss, backward.statement, file, program)
        parts = [backward.loss, *(part for line, part in lines if not isinstance(line, ast.Expr))]  # no list's `append`
        if any(reads(part) & names and all(node is not value for node in walk(part)) for part in parts):
            return True
    return False


def _given(use: Use, program: Program) -> Iterator[tuple[SourceFile, ast.stmt, ast.expr]]:
    """Where what is added comes from: the statement that adds it, or the calls that hand it to the function that does."""
    function = program.names(use.file).function_of(use.statement)
    name = use.value.id if isinstance(use.value, ast.Name) else None
    calls = resolver_of(program).calls_of(function, use.file) if function is not None and name else []
    handed = [
        (file, call, dict(arguments_of(call, function)).get(name or "")) for file, call in calls if function is not None
    ]
    found = [(file, file.statement(call), value) for file, call, value in handed if value is not None]
    if found:
        yield from found
    elif use.value is not None:
        yield use.file, use.statement, use.value


def _is_later(
    file: SourceFile, node: ast.expr, block: Sequence[ast.stmt], backward: Backward, program: Program
) -> bool:
    """Whether a read outside of the block may come after it."""
    place = _place(node, file, program)
    if place is _place(backward.statement, backward.file, program):
        return node.lineno > (block[-1].end_lineno or 0)
    if isinstance(place, (ast.FunctionDef, ast.AsyncFunctionDef)) and place.name == "__init__":
        return False
    function = program.names(backward.file).function_of(backward.statement)
    calls = resolver_of(program).calls_of(function, backward.file) if function is not None else []
    same = [call.lineno for where, call in calls if where is file and _place(call, where, program) is place]
    return not same or node.lineno > min(same)


def _is_beside(one: Pile, main: Pile, program: Program) -> bool:
    """Whether a list is filled in step with another one, and used up by the same backward."""
    return one.is_list and main.is_list and bool(_rounds(one, program) & _rounds(main, program))


def _rounds(pile: Pile, program: Program) -> frozenset[ast.AST]:
    """The innermost loops in whose rounds a pile is filled, by what its statements' functions are called in too."""
    found: set[ast.AST] = set()
    queue = [(one.statement, one.file, 0) for one in pile.added]
    while queue:
        node, file, depth = queue.pop()
        loop = loop_of(node, file)
        function = program.names(file).function_of(node)
        if loop is not None:
            found.add(loop)
        elif function is not None and depth < _DEPTH:
            queue += [(file.statement(call) if where is file else where.statement(call), where, depth + 1)
                      for where, call in resolver_of(program).calls_of(function, file)]  # fmt: skip
    return frozenset(found)
