"""Losses that train a tensor alone: a temperature, a multiplier, a threshold, whose optimizer owns nothing else."""

from __future__ import annotations

import ast

from explainer.source.loop.backward import calls_of, cleared, stepped
from explainer.source.loop.ownership import classes_named, tensors_of
from explainer.source.loop.pair import Pair
from explainer.source.program import Program
from explainer.source.value.resolve import resolver_of


def own_tensors(pair: Pair, program: Program) -> frozenset[str]:
    """The tensors that the second loss of a pair trains, and no module: what it shares with the first is data to it.

    Where both optimizers step behind both, the second one runs no module of its own.
    """
    found: set[str] = set()
    held: set[str] = set()
    for statement, owned in pair.later:
        optimizer = stepped(statement) or cleared(statement)
        if not owned and optimizer:
            found |= tensors_of(optimizer, statement, pair.file, program)
        elif owned and all(_is_of_tensors(one, statement, pair, program) for one in owned):
            held |= owned
    is_of_modules = bool(pair.trained_later - pair.stepped - held) or not pair.stepped
    if is_of_modules and not (pair.shared and _runs_nothing(pair, held, program)):
        return frozenset()
    return frozenset(found | held)


def _is_of_tensors(name: str, at: ast.stmt, pair: Pair, program: Program) -> bool:
    """Whether a module holds parameters of its own and no layers: `Temperature` with its `log_alpha`."""
    for place in (at, *pair.second_lines, pair.second.statement):
        for where, owner in classes_named(name, place, pair.file, program):
            made = [one for one in ast.walk(owner) if isinstance(one, ast.Call)]
            called = {program.names(where).qualified(one.func) or "" for one in made}
            kinds = {one.rpartition(".")[2] for one in called if one.startswith("torch.nn.")}
            return kinds == {"Parameter"} and not any(resolver_of(program).find_class(one.func, where) for one in made)
    return False


def _runs_nothing(pair: Pair, held: set[str], program: Program) -> bool:
    """Whether the second loss runs no module that an optimizer owns, beside what it shares with the first and what it trains."""
    owned = {one for _, names in (*pair.steps, *pair.later) for one in names} - held
    apart = [one for one in pair.second_lines if one not in pair.shared and one not in pair.first_lines]
    return not any(calls_of(frozenset({name}), one, pair.file, program) for name in owned for one in apart)
