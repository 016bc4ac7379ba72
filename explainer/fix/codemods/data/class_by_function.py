"""Targets that the program itself has a function for become classes by that: `cross_entropy(scores, to_class(stars))`.

    def to_class(stars):
        return (stars * 2).round().long() - 1

A cast to integers would cut half stars off. Only where the loss that failed takes classes, and one function of the program, called
elsewhere with values of the same name, makes integers of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import is_crash
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.loss.loss import find_losses
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, parameters_of, walk_scope
from explainer.source.value.resolve import resolver_of

_INTEGERS = frozenset({"long", "int", "argmax", "bucketize", "searchsorted"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the target of the loss that failed."""
    if not context.has_failed:
        return
    for loss in context.program.once(find_losses):
        name = dotted_name(loss.target)
        if not loss.takes_classes or name is None or not is_crash(loss.file, loss.call, context):
            continue
        found = _makers(name.rpartition(".")[2], loss.file, context.program)
        if len(found) == 1:
            (written,) = found
            text = f"{written}({loss.file.segment(loss.target)})"
            yield Proposal(
                edits=(edit_of(loss.file, loss.target, text),),
                culprit=culprit_of(loss.file, loss.call, f"takes `{name}` for classes, which `{written}` makes of them elsewhere"),
                belief=2.6,
                because=f"so does the program elsewhere: a cast to integers would number other classes than `{written}`",
                title=f"Make classes of the target as the program does elsewhere: `{text}`",
            )  # fmt: skip


def _makers(name: str, file: SourceFile, program: Program) -> set[str]:
    """The functions of one parameter, as this file calls them, that make integers of values of a name."""
    found = set()
    for where in program.parsed():
        for call in where.walk():
            if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
                continue
            given = dotted_name(call.args[0]) or ""
            target = resolver_of(program).function_of(call, Value(call, where)) if given else None
            if target is None or name not in (given.rpartition(".")[2], *parameters_of(target[1])):
                continue
            written = _written(target[1], target[0], file, program)
            if written is not None and _gives_integers(target[1]):
                found.add(written)
    return found


def _gives_integers(function: Function) -> bool:
    """Whether each value that a function returns has been made an integer on its way."""
    ends = [one.value for one in walk_scope(function) if isinstance(one, ast.Return) and one.value is not None]
    return bool(ends) and all(
        any(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _INTEGERS
            for node in walk(end)
        )
        for end in ends
    )


def _written(function: Function, home: SourceFile, file: SourceFile, program: Program) -> str | None:
    """How a file calls a function of a module: by its name where that is its own or imported, through the module that is."""
    if home is file:
        return function.name
    for alias, target in program.names(file).imports.items():
        if target.rpartition(".")[2] == function.name:
            return alias
        found = program.find_function(f"{target}.{function.name}")
        if (
            found is not None
            and found[1] is function
            and target
            and home.path.endswith(f"{target.replace('.', '/')}.py")
        ):
            return f"{alias}.{function.name}"
    return None
