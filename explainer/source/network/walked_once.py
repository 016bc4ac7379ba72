"""What hands out the parameters of a module once: a generator, a `filter`, a `chain`, a function that yields them."""

from __future__ import annotations

import ast

from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, walk_scope
from explainer.source.value.resolve import resolver_of

_ONCE = ("itertools.chain", "itertools.chain.from_iterable")
_BUILT_IN = ("filter", "map")
_LISTS = ("parameters", "named_parameters")


def gives_parameters_once(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether an expression is an iterator over parameters, or a function of the program returns or yields one."""
    if is_walked_once(node, program.names(file)):
        return True
    target = resolver_of(program).function_of(node, Value(node, file)) if isinstance(node, ast.Call) else None
    if target is None:
        return False
    own = list(walk_scope(target[1]))
    reads = any(isinstance(one, ast.Attribute) and one.attr in _LISTS for one in walk(target[1]))
    returned = [one.value for one in own if isinstance(one, ast.Return) and one.value is not None]
    names = program.names(target[0])
    is_yielding = reads and any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in own)
    return is_yielding or (bool(returned) and all(is_walked_once(one, names) for one in returned))


def is_walked_once(node: ast.expr, names: Names) -> bool:
    """Whether an expression is itself an iterator over parameters."""
    if isinstance(node, ast.Call):
        is_list = isinstance(node.func, ast.Attribute) and node.func.attr in _LISTS
        is_once = names.is_call(node, *_ONCE) or (isinstance(node.func, ast.Name) and node.func.id in _BUILT_IN)
        if not is_list and not is_once:
            return False
    elif not isinstance(node, ast.GeneratorExp):
        return False
    return any(isinstance(one, ast.Attribute) and one.attr in _LISTS for one in walk(node))
