"""A loader gets the collate function that the program's other loader has, or the one that is written and that nobody takes.

`DataLoader(train, batch_size=8)` beside `DataLoader(val, batch_size=8, collate_fn=pad)`: rows of different lengths are not stacked.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import add_argument
from explainer.source.data.loader import LOADERS, NOT_STACKED
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import Value, parameters_of
from explainer.source.value.resolve import resolver_of

_COLLATES = re.compile(r"collate|pad_|_pad|pack_", re.IGNORECASE)
_FITS = "what the other loader makes of the same kind of rows"
_UNUSED = "right if it was written for these rows: nothing else takes it"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the loaders without a collate function, where there is one that fits."""
    if not any(refused in one.message for one in context.incident.exceptions for refused in NOT_STACKED):
        return
    program = context.program
    found = [
        (file, node)
        for file in program.parsed()
        for node in file.walk()
        if isinstance(node, ast.Call) and program.names(file).is_call(node, *LOADERS)
    ]
    given = {
        dotted_name(value): (file, node)
        for file, node in found
        if (value := _collate_fn(node, file, program)) is not None
    }
    bare = [(file, node) for file, node in found if _is_bare(node, file, program)]
    for file, node in bare:
        written = set(given) or set(_unused(file, program))
        name = next(iter(written)) if len(written) == 1 else None
        if name is None or not (
            _is_known(name, file, program) or _is_sibling(name, node, file, given.get(name), program)
        ):
            continue
        edits = tuple(add_argument(file, one, f"collate_fn={name}") for where, one in bare if where is file)
        yield Proposal(
            edits=edits,
            culprit=culprit_of(file, node, f"stacks rows of different sizes; `{name}` pads them"),
            belief=2.0 if given else 1.5,
            applicability=None if given else "unsafe",
            because=_FITS if given else _UNUSED,
        )
        return


def _collate_fn(call: ast.Call, file: SourceFile, program: Program) -> ast.expr | None:
    """What a loader is given as its collate function, itself or by the options that it unpacks."""
    for keyword in call.keywords:
        if keyword.arg == "collate_fn":
            return keyword.value
        found = _options(keyword.value, file, program) if keyword.arg is None else None
        if found and "collate_fn" in found:
            return found["collate_fn"]
    return None


def _is_bare(call: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether a loader takes the default: no keyword of its own, none in options that are unpacked, and not by position."""
    for keyword in call.keywords:
        found = _options(keyword.value, file, program) if keyword.arg is None else {}
        if keyword.arg == "collate_fn" or found is None or "collate_fn" in found:
            return False
    return len(call.args) < 7


def _options(node: ast.expr, file: SourceFile, program: Program) -> dict[str, ast.expr] | None:
    """The entries of a dictionary by their keys; None for one that is not written out in one place."""
    behind = [one for one in resolver_of(program).behind(Value(node, file)) if one.pick is None]
    made = behind[0].node if len(behind) == 1 else node
    if isinstance(made, ast.Call) and dotted_name(made.func) == "dict" and not made.args:
        return {one.arg: one.value for one in made.keywords if one.arg is not None}
    if not isinstance(made, ast.Dict) or not all(isinstance(one, ast.Constant) for one in made.keys):
        return None
    return {str(getattr(key, "value", "")): value for key, value in zip(made.keys, made.values, strict=True)}


def _unused(file: SourceFile, program: Program) -> Iterator[str]:
    """The functions of one batch in a file, named as what collates, that nothing reads."""
    for node in file.tree.body if file.tree is not None else ():
        if isinstance(node, ast.FunctionDef) and _COLLATES.search(node.name) and len(parameters_of(node)) == 1:
            reads = [
                one
                for each in program.parsed()
                for one in each.walk()
                if isinstance(one, (ast.Name, ast.Attribute)) and (dotted_name(one) or "").endswith(node.name)
            ]
            if not reads:
                yield node.name


def _is_known(name: str, file: SourceFile, program: Program) -> bool:
    """Whether a file has a function of its own, or an import, of that name."""
    own = [one.name for one in file.tree.body if isinstance(one, ast.FunctionDef)] if file.tree is not None else []
    return name in own or name in program.names(file).imports


def _is_sibling(
    name: str, call: ast.Call, file: SourceFile, other: tuple[SourceFile, ast.Call] | None, program: Program
) -> bool:
    """Whether a loader stands where another one reads the same name: `self.pad` in a class, a local name in a function."""
    if other is None or other[0] is not file:
        return False
    names = program.names(file)
    find = names.class_of if name.startswith("self.") else names.function_of
    place = find(call)
    return place is not None and place is find(other[1])
