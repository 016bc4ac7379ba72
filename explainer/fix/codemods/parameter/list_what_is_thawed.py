"""Keeps in a list the parameters that one pass freezes and another thaws: `list(itertools.chain(a.parameters(), b.parameters()))`.

`chain`, `filter`, `map`, a generator expression and `parameters()` itself give their parameters once; the pass that is to switch
them on again meets none of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.used_up import listed
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.network.freeze import flag_of
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, scope_of
from explainer.source.value.flow import arguments_of
from explainer.source.value.resolve import resolver_of

_ONCE = ("itertools.chain", "itertools.chain.from_iterable")
_BUILT_IN = ("filter", "map")
_LISTS = ("parameters", "named_parameters")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each such iterator that is walked more than once, and by one pass to set the flags."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and _is_walked_once(node.value, names):
                name = dotted_name(node.targets[0])
                walks = _walks(name, node, file, context.program) if name is not None else []
                if len(walks) > 1 and any(_sets_flags(one, where, context.program) for one, where in walks):
                    why = f"gives its parameters once: what walks `{name}` first leaves nothing to thaw"
                    yield Proposal(
                        edits=(edit_of(file, node.value, listed(node.value, file)),),
                        culprit=culprit_of(file, node.value, why),
                        belief=2.5,
                    )


def _is_walked_once(node: ast.expr, names: Names) -> bool:
    """Whether an expression is an iterator over parameters."""
    if isinstance(node, ast.Call):
        is_list = isinstance(node.func, ast.Attribute) and node.func.attr in _LISTS
        is_once = names.is_call(node, *_ONCE) or (isinstance(node.func, ast.Name) and node.func.id in _BUILT_IN)
        if not is_list and not is_once:
            return False
    elif not isinstance(node, ast.GeneratorExp):
        return False
    return any(isinstance(one, ast.Attribute) and one.attr in _LISTS for one in walk(node))


def _walks(name: str, made: ast.Assign, file: SourceFile, program: Program) -> list[tuple[ast.expr, SourceFile]]:
    """The reads of what is bound to a name once: all of an attribute, those of its scope of a variable."""
    last = name.rpartition(".")[2]
    if "." not in name:
        scope = scope_of(made, file)
        is_anew = len([one for one in bounds_of(scope) if one.name == name]) != 1
        reads = [one for one in walk(scope) if isinstance(one, ast.Name) and one.id == name] if not is_anew else []
        return [(one, file) for one in reads if isinstance(one.ctx, ast.Load)]
    every = [
        (one, where)
        for where in program.parsed()
        for one in where.walk()
        if isinstance(one, ast.Attribute) and one.attr == last and dotted_name(one) is not None
    ]
    is_anew = len([one for one, _ in every if isinstance(one.ctx, ast.Store)]) != 1
    return [(one, where) for one, where in every if isinstance(one.ctx, ast.Load)] if not is_anew else []


def _sets_flags(read: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a read is the pass of a loop that sets flags, or an argument of a function that does so with it."""
    above = file.parents.get(read)
    if isinstance(above, (ast.For, ast.comprehension)) and above.iter is read:
        return any(
            flag_of(one) is not None
            for one in walk(file.parents[above] if isinstance(above, ast.comprehension) else above)
        )
    call = file.parents.get(above) if isinstance(above, ast.keyword) else above
    if not isinstance(call, ast.Call) or call.func is read:
        return False
    target = resolver_of(program).function_of(call, Value(call, file))
    if target is None:
        return False
    names = [key for key, given in arguments_of(call, target[1]) if given is read]
    return any(
        isinstance(loop, ast.For) and dotted_name(loop.iter) in names and any(flag_of(one) is not None for one in walk(loop))
        for loop in walk(target[1])
    )  # fmt: skip
