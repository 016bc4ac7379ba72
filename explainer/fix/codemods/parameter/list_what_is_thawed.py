"""Keeps in a list the parameters that one pass freezes and another thaws: `list(itertools.chain(a.parameters(), b.parameters()))`.

`chain`, `filter`, `map`, a generator expression and `parameters()` itself give their parameters once; the pass that is to switch
them on again meets none of them. So it is where a function walks what it is given twice, as a context manager that freezes does:
`params = list(params)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.fix.text.used_up import listed
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.freeze import flag_of
from explainer.source.network.walked_once import gives_parameters_once, is_walked_once
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, bounds_of, scope_of, walk_scope
from explainer.source.value.flow import arguments_of
from explainer.source.value.resolve import resolver_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each such iterator that is walked more than once, and by one pass to set the flags."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and is_walked_once(node.value, names):
                name = dotted_name(node.targets[0])
                walks = _walks(name, node, file, context.program) if name is not None else []
                if len(walks) > 1 and any(_sets_flags(one, where, context.program) for one, where in walks):
                    why = f"gives its parameters once: what walks `{name}` first leaves nothing to thaw"
                    yield Proposal(
                        edits=(edit_of(file, node.value, listed(node.value, file)),),
                        culprit=culprit_of(file, node.value, why),
                        belief=2.5,
                    )
    yield from _walked_twice(context)


def _walked_twice(context: Context) -> Iterator[Proposal]:
    """An edit for each function that freezes and thaws what it is given, and that is given an iterator."""
    program = context.program
    is_frozen = context.incident.fact("live_frozen_optimizer") is not None
    for file, function in program.functions():
        loops = [one for one in walk_scope(function) if isinstance(one, ast.For)]
        switching = [one for one in loops if any(flag_of(each) is not None for each in walk(one))]
        name = dotted_name(switching[-1].iter) if len(switching) > 1 else None
        walks = [one for one in loops if dotted_name(one.iter) == name]
        is_bound = any(one.name == name for one in bounds_of(function))
        if name is None or name not in all_parameters(function) or is_bound or len(walks) < 2:
            continue
        calls = resolver_of(program).calls_of(function, file)
        given = [(value, where) for where, call in calls for key, value in arguments_of(call, function) if key == name]
        if any(gives_parameters_once(value, where, program) for value, where in given):
            has_docstring = ast.get_docstring(function, clean=False) is not None
            first = function.body[1 if has_docstring else 0]
            yield Proposal(
                edits=(insert_before(file, first, f"{name} = list({name})"),),
                culprit=culprit_of(file, walks[-1], f"walks `{name}` again, of which the first pass has left nothing"),
                belief=4.0 if is_frozen else 2.5,
            )


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
