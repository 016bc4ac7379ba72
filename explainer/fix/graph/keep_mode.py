"""The functions that keep grad mode off where a decorator is taken off what they call: an evaluation, what acts by a policy."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import insert_before
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.network.policy import takes_ratio
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.resolve import resolver_of

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
            if caller in acting or ("eval" in called and "backward" not in called):
                yield insert_before(file, caller, f"@{decorator}")


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
