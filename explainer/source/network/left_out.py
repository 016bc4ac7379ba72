"""Outputs of a module that the program's losses leave out: a head that no weight names, `logits, _ = model(x)`.

The reading is structural: the forward computes every output, and what runs the module takes some of them. Where a use of the outputs
cannot be followed, nothing is said.
"""

from __future__ import annotations

import ast

from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.network.module import parts_of
from explainer.source.network.output import Reads, outputs_read
from explainer.source.program import Program
from explainer.source.setting.key import names_of, roots_of, walked, words_behind
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, reaching, walk_scope
from explainer.source.value.resolve import resolver_of


def left_out(owner: ast.ClassDef, file: SourceFile, program: Program) -> tuple[str, ...]:
    """How the names of the parameters begin that only outputs have which nothing reads: `heads.landmarks.`.

    `heads.` where the names that the loss goes over are not known; empty where every output is read, or that is not known.
    """
    found = resolver_of(program).method(owner, "forward", file)
    returned = [one for one in walk_scope(found[1]) if isinstance(one, ast.Return)] if found is not None else []
    if found is None or len(returned) != 1 or returned[0].value is None:
        return ()
    reads = outputs_read(found[1], found[0], program)
    made = _behind_name(returned[0].value, found[0])
    if reads.is_lost or not (reads.words or reads.lists or reads.places):
        return ()
    parts = set(parts_of(owner, file, program))
    if isinstance(made, ast.Tuple) and reads.places and not reads.words and not reads.lists:
        return _of_places(made, reads, found, parts)
    if isinstance(made, ast.Dict) and not reads.places:
        return _of_words(made, reads, found, parts, program)
    if isinstance(made, ast.DictComp) and not reads.places:
        part = (dotted_name(walked(made.generators[0].iter)) or "").removeprefix("self.")
        table = _table(part, owner, file) if part in parts else None
        return _of_table(part, table, reads, program) if table is not None else ()
    return ()


def _of_places(made: ast.Tuple, reads: Reads, forward: tuple[SourceFile, Function], parts: set[str]) -> tuple[str, ...]:
    taken = set().union(*reads.places)
    if any(isinstance(one, ast.Starred) for one in made.elts) or max(taken, default=0) >= len(made.elts):
        return ()
    kept = [one for place, one in enumerate(made.elts) if place in taken]
    return _own_parts([one for one in made.elts if one not in kept], kept, forward, parts)


def _of_words(
    made: ast.Dict, reads: Reads, forward: tuple[SourceFile, Function], parts: set[str], program: Program
) -> tuple[str, ...]:
    read = _names_read(reads, program)
    keys = [key.value if isinstance(key, ast.Constant) else None for key in made.keys]
    if read is None or None in keys:
        return ()
    kept = [value for key, value in zip(keys, made.values, strict=True) if key in read]
    spare = [str(key) for key in keys if key not in read]
    if not kept or (not reads.lists and any(_is_mentioned(one, reads) for one in spare)):
        return ()
    return _own_parts([one for one in made.values if one not in kept], kept, forward, parts)


def _of_table(part: str, table: Value, reads: Reads, program: Program) -> tuple[str, ...]:
    """`{name: head(h) for name, head in self.heads.items()}`: every head of a table."""
    heads, read = names_of(table, program), _names_read(reads, program)
    if heads is not None and read is not None:
        spare = sorted(heads - read)
        is_meant = bool(heads & read) and (reads.lists or not any(_is_mentioned(one, reads) for one in spare))
        return tuple(f"{part}.{one}." for one in spare) if is_meant else ()
    roots = [root for one in reads.lists for root in roots_of(one, program)]
    own = words_behind(table, program)
    is_other = bool(roots) and not any(words_behind(one, program) & own for one in roots)
    return (f"{part}.",) if is_other else ()


def _table(part: str, owner: ast.ClassDef, file: SourceFile) -> Value | None:
    """What names the entries of a `ModuleDict` that `__init__` makes."""
    made = next((one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    bound = [one for one in bounds_of(made) if one.name == f"self.{part}"] if made is not None else []
    call = bound[0].node if len(bound) == 1 else None
    given = call.args[0] if isinstance(call, ast.Call) and len(call.args) == 1 else None
    if isinstance(given, ast.DictComp):
        given = given.generators[0].iter
    return Value(walked(given), file) if given is not None else None


def _names_read(reads: Reads, program: Program) -> set[str] | None:
    """The names that are read of the outputs; None where the loops over them are not known."""
    found = set(reads.words)
    for one in reads.lists:
        roots = list(roots_of(one, program))
        known = [names_of(root, program) for root in roots]
        if not roots or None in known:
            return None
        found.update(*(each for each in known if each is not None))
    return found


def _own_parts(
    spare: list[ast.expr], kept: list[ast.expr], forward: tuple[SourceFile, Function], parts: set[str]
) -> tuple[str, ...]:
    """The parts that only the outputs run that are left out; empty where one of these has none of its own."""
    used = set().union(*(_parts_behind(one, forward, parts, set()) for one in kept))
    own = [_parts_behind(one, forward, parts, set()) - used for one in spare]
    return tuple(sorted(f"{part}." for one in own for part in one)) if all(own) else ()


def _parts_behind(node: ast.AST, forward: tuple[SourceFile, Function], parts: set[str], seen: set[str]) -> set[str]:
    found: set[str] = set()
    for one in walk(node):
        if isinstance(one, ast.Attribute) and one.attr in parts:
            found.add(one.attr)
        elif isinstance(one, ast.Name) and one.id not in seen:
            seen.add(one.id)
            for bound in bounds_of(forward[1]):
                found |= _parts_behind(bound.node, forward, parts, seen) if bound.name == one.id else set()
    return found


def _behind_name(node: ast.expr, file: SourceFile) -> ast.expr:
    """What a name stands for that is bound once and filled by nothing."""
    found = reaching(node.id, node, file) if isinstance(node, ast.Name) else []
    return found[0].node if len(found) == 1 and not found[0].fills and found[0].pick is None else node


def _is_mentioned(word: str, reads: Reads) -> bool:
    """Whether the code that reads the outputs speaks of one that it does not read: then it may have been forgotten."""
    said = (
        str(getattr(one, field, "") or "")
        for scope in reads.functions
        for one in walk_scope(scope)
        for field in ("id", "attr", "arg", "value")
        if not isinstance(getattr(one, field, ""), ast.AST)
    )
    return any(word in one for one in said)
