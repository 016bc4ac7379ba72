"""The functions that keep grad mode off where a decorator is taken off what they call: an evaluation, what acts by a policy."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import insert_before
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.backward import find_backwards
from explainer.source.name import Function
from explainer.source.network.policy import takes_ratio
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of
from explainer.source.value.upstream import calls_behind

_DRAWS = frozenset({"sample", "rsample", "multinomial", "randn", "randn_like", "normal"})


def keep_mode(function: Function, file: SourceFile, decorator: str, program: Program) -> Iterator[Edit]:
    """The decorator on what calls the function in an evaluation of its own, or to act by it, in the same file."""
    seen: set[Function] = set()
    calls = [(one, program.names(one).function_of(call)) for one, call in resolver_of(program).calls_of(function, file)]
    acting = _acting([caller for _, caller in calls if caller is not None], program)
    for where, caller in calls:
        if where is file and caller is not None and caller not in seen and not caller.decorator_list:
            seen.add(caller)
            called = methods_of(caller)
            is_evaluation = "eval" in called and "backward" not in called and not _is_in_loss(caller, program)
            if caller in acting or is_evaluation:
                yield insert_before(file, caller, f"@{decorator}")


def _is_in_loss(function: Function, program: Program) -> bool:
    """Whether a loss is computed of what a function gives: it may leave dropout out of a term that trains."""
    losses = [Value(one.loss, one.file) for one in find_backwards(program)]
    function_of = resolver_of(program).function_of
    targets = (function_of(call, Value(call, file)) for file, call in calls_behind(losses, program))
    return any(one is not None and one[1] is function for one in targets)


def _acting(callers: list[Function], program: Program) -> frozenset[Function]:
    """Those of several callers that draw from what a policy gives, where another one scores it for a ratio of probabilities.

    With a graph of their own the old probabilities would have the ratio's derivatives cancel.
    """
    acting = frozenset(one for one in callers if methods_of(one) & _DRAWS and "log_prob" in methods_of(one))
    scoring = [one for one in callers if one not in acting and "log_prob" in methods_of(one)]
    return acting if scoring and takes_ratio(program) else frozenset()


def methods_of(function: Function) -> set[str]:
    """The names of the methods that a function calls."""
    return {
        one.func.attr for one in walk(function) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)
    }
