"""A term of a loss stays a tensor on its way there: `levels = [kl(q) for q in posteriors]` for `[kl(q).item() for q in posteriors]`.

A trace names the sum and the line that read the number; source shows the names between them. What else is done with these is done
with numbers still, so that a log holds no graph.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.patch import Edit
from explainer.model.trace import ADDED, DEAD_TERM
from explainer.source.file import SourceFile
from explainer.source.loss.read_number import Term, tensor_of
from explainer.source.loss.read_term import terms_of
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Bound, all_parameters, bounds_of, reaching, scope_of

_PLAIN = -1  # no conversion: `{x!r}` has one
_MEANS = (".mean", "fmean")
_WHOLE = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)


@dataclass(frozen=True)
class _Way:
    """What lies on the way of all terms: calls, names, and of the tables there the keys that are looked up, None for all."""

    calls: set[ast.Call]
    passed: set[ast.expr]
    keys: dict[tuple[ast.AST, str], set[str] | None]


class _Unclear(Exception):
    """A use of a number that the edit cannot leave a number."""


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each line whose numbers are followed to a sum; where the sum could have had the tensor, that comes first."""
    program = context.program
    read = [(line, file, statement) for line, file, statement in traced_statements(DEAD_TERM, context, guesses=True)]
    lines = {(file.path, line.line) for line, file, _ in read}
    terms = [
        (one, line.is_guess)
        for line, file, statement in traced_statements(ADDED, context, guesses=True)
        for one in terms_of(statement, file, program, lines)
    ]
    way = _way([one for one, _ in terms])
    for line, file, statement in read:
        own = [(one, guess) for one, guess in terms if any(file.statement(each) is statement for each in one.readings)]
        found = [_edits(one, way, program) for one, _ in own]
        edits = {(one.file, one.start): one for each in found for one in each or ()}
        if edits and all(found):
            culprit = culprit_of(file, statement, line.says)
            belief = 2.0 if all(guess for _, guess in own) else 1.0
            yield Proposal(edits=tuple(edits.values()), culprit=culprit, belief=belief)


def _way(terms: list[Term]) -> _Way:
    keys: dict[tuple[ast.AST, str], set[str] | None] = {}
    for term in terms:
        for name, key in term.tables.items():
            at = scope_of(name, term.names[name]), getattr(name, "id", "")
            before = keys.setdefault(at, set())
            keys[at] = None if key is None or term.is_whole or before is None else before | {key}
    return _Way(
        calls={call for one in terms for call in one.calls},
        passed={name for one in terms for name in (*one.names, *one.fills)},
        keys=keys,
    )


def _edits(term: Term, way: _Way, program: Program) -> list[Edit] | None:
    """The edits that leave a term a tensor from where it is read to the sum; None where something on the way needs a number."""
    if not term.is_clear or not _is_called_here_only(term, way.calls, program):
        return None
    try:
        edits = [_kept(read, file) for read, file in term.readings.items()]
        edits += [one for call, file in term.sums.items() for one in _summed(call, file, program)]
        for name, file in term.names.items():
            edits += _numbers(name, file, term, way)
    except _Unclear:
        return None
    return edits


def _is_called_here_only(term: Term, calls: set[ast.Call], program: Program) -> bool:
    """Whether each function on the way is named on the way alone."""
    names = set(term.calls.values())
    called = {call.func for call in calls}
    return all(
        one in called
        for file in (program.parsed() if names else ())
        for one in (
            *(each for name in names for each in file.plain_names.get(name, ())),
            *(each for name in names for each in file.attributes.get(name, ())),
        )
    )


def _kept(read: ast.Call, file: SourceFile) -> Edit:
    tensor = tensor_of(read)
    assert tensor is not None
    text = file.segment(tensor)
    return edit_of(file, read, text if isinstance(tensor, _WHOLE) else f"({text})")


def _summed(call: ast.Call, file: SourceFile, program: Program) -> Iterator[Edit]:
    """Python's own `sum` adds up tensors; what takes numbers only gives way to it."""
    called = program.names(file).qualified(call.func) or ""
    if called == "sum":
        return
    if len(call.args) != 1 or call.keywords or not isinstance(call.args[0], ast.Name):
        raise _Unclear
    name = call.args[0].id
    yield edit_of(file, call, f"(sum({name}) / len({name}))" if called.endswith(_MEANS) else f"sum({name})")


def _numbers(name: ast.expr, file: SourceFile, term: Term, way: _Way) -> Iterator[Edit]:
    """The other uses of a name on the way, as uses of numbers."""
    if not isinstance(name, ast.Name):
        raise _Unclear
    scope = scope_of(name, file)
    own = {one for one in term.bounds if one.name == name.id}
    if own and all(isinstance(one.node, ast.Constant) for one in own):
        return
    is_shared = any(isinstance(one, (ast.Global, ast.Nonlocal)) and name.id in one.names for one in walk(scope))
    if is_shared or _is_written_into(own):
        raise _Unclear
    for one in walk(scope):
        if _is_load(one, name.id) and one not in way.passed and _is_of(one, own, scope, file):
            if name in term.tables:
                yield from _as_table(one, way.keys[scope, name.id], file)
            else:
                yield from _as_list(one, file, way.passed) if name in term.lists else _as_number(one, file)


def _is_load(node: ast.AST, name: str) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def _is_written_into(own: set[Bound]) -> bool:
    """Whether a tensor that has another name too would be added to in place: `total = first; total += second`."""
    adds = {
        one for one in own if isinstance(one.statement, ast.AugAssign) and isinstance(one.statement.target, ast.Name)
    }
    begins = [one.node for one in own - adds if not one.fills]
    return bool(adds) and not all(isinstance(one, (ast.Constant, ast.List)) for one in begins)


def _is_of(use: ast.Name, own: set[Bound], scope: ast.AST, file: SourceFile) -> bool:
    """Whether a use may see what binds a name on the way; in a function inside, where that does not bind it anew."""
    inner = scope_of(use, file)
    if inner is scope:
        return not own or bool(own & set(reaching(use.id, use, file)))
    is_parameter = not isinstance(inner, ast.Module) and use.id in all_parameters(inner)
    return not is_parameter and all(one.name != use.id for one in bounds_of(inner))


def _as_number(use: ast.expr, file: SourceFile) -> Iterator[Edit]:
    """A use of one number; `float` and a text write a tensor of one value as that value."""
    above = file.parents.get(use)
    is_float = isinstance(above, ast.Call) and dotted_name(above.func) == "float" and use in above.args
    if not is_float and not _is_in_text(use, file):
        yield edit_of(file, use, f"float({file.segment(use)})")


def _is_in_text(use: ast.expr, file: SourceFile) -> bool:
    """Whether a text shows a number, or what is computed from it.

    Raises:
        _Unclear: the text shows it otherwise; Python before 3.12 does not tell where in a text a name stands.
    """
    if file.enclosing(use, ast.JoinedStr) is None:
        return False
    above = file.parents.get(use)
    while isinstance(above, ast.BinOp):
        above = file.parents.get(above)
    if isinstance(above, ast.FormattedValue) and above.conversion == _PLAIN:
        return True
    raise _Unclear


def _as_list(use: ast.Name, file: SourceFile, passed: set[ast.expr]) -> Iterator[Edit]:
    """A use of a list of numbers: what counts it stays, what goes through it gets numbers one by one."""
    above = file.parents.get(use)
    called = dotted_name(above.func) if isinstance(above, ast.Call) and above.args == [use] else None
    is_entry = isinstance(above, ast.Subscript) and above.value is use and not isinstance(above.slice, ast.Slice)
    loop = _loop_of(use, file)
    if called == "len":
        return
    if isinstance(above, ast.expr) and (called == "sum" or is_entry):
        yield from _as_number(above, file)
    elif loop is not None:
        for one in walk(scope_of(use, file)):
            is_element = _is_load(one, loop.name) and one not in passed
            if is_element and isinstance(one, ast.Name) and loop in reaching(loop.name, one, file):
                yield from _as_number(one, file)
    elif file.enclosing(use, ast.JoinedStr) is not None:
        raise _Unclear
    else:
        yield edit_of(file, use, f"[float(one) for one in {use.id}]")


def _as_table(use: ast.Name, keys: set[str] | None, file: SourceFile) -> Iterator[Edit]:
    """A use of a table: what writes an entry stays, what looks one up gets its number, what takes all gets a table of numbers."""
    above = file.parents.get(use)
    if isinstance(above, ast.Subscript) and above.value is use:
        key = above.slice.value if isinstance(above.slice, ast.Constant) else None
        if not isinstance(above.ctx, ast.Load) or (key is not None and keys is not None and key not in keys):
            return
        if key is None and keys is not None:
            raise _Unclear
        yield from _as_number(above, file)
    elif file.enclosing(use, ast.JoinedStr) is not None:
        raise _Unclear
    elif keys is None:
        yield edit_of(file, use, f"{{key: float(one) for key, one in {use.id}.items()}}")
    else:
        entries = ", ".join(f'"{one}": float({use.id}["{one}"])' for one in sorted(keys))
        yield edit_of(file, use, f"{{**{use.id}, {entries}}}")


def _loop_of(use: ast.Name, file: SourceFile) -> Bound | None:
    """The name of a loop, or of the `for` of a comprehension, that each element of a list gets."""
    found = [one for one in bounds_of(scope_of(use, file)) if one.node is use and one.is_element and one.pick is None]
    return found[0] if len(found) == 1 and "." not in found[0].name else None
