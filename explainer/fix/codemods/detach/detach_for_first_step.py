"""What one network made reaches the step of another one detached, where the two steps are functions of their own.

`self.update_critic(real, fake)` and then `self.update_generator(real, fake)`, each with a loss, a backward and a step: the critic's
loss scores `fake.detach()`. Only where the first function's optimizer owns nothing that made the value, and the second's does.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.loop.backward import Backward, find_backwards, owned_by, stepped
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import start_of, walk
from explainer.source.value.binding import Value, reaching
from explainer.source.value.flow import arguments_of
from explainer.source.value.lineage import lineage, reads
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_WHY = "sends this loss back through what made `{name}` as well, and the next step's loss cannot any more"


@dataclass(frozen=True, slots=True)
class _Step:
    """A call of a function that computes a loss, sends it back and steps an optimizer, which owns these modules."""

    call: ast.Call
    function: Function
    backward: Backward
    owned: frozenset[str]


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each value that two such functions are given, one after the other."""
    if not context.has_failed:
        return
    for file, function in context.program.functions():
        steps = sorted(_steps(function, file, context.program), key=lambda one: start_of(one.call))
        for first, second in itertools.pairwise(steps):
            for name, parameter in arguments_of(first.call, first.function):
                if not _is_given(parameter, second) or not _is_of_second(
                    Value(parameter, file), first, second, context
                ):
                    continue
                uses = _uses(name, first, context.program)
                if uses:
                    where = first.backward.file
                    yield Proposal(
                        edits=tuple(put_method(where, one, ".detach()") for one in uses),
                        culprit=culprit_of(where, uses[0], _WHY.format(name=name)),
                        belief=2.0,
                    )


def _steps(function: Function, file: SourceFile, program: Program) -> Iterator[_Step]:
    resolver = resolver_of(program)
    for call in walk(function):
        found = resolver.function_of(call, Value(call.func, file)) if isinstance(call, ast.Call) else None
        if found is None or not isinstance(call, ast.Call) or found[1] is function:
            continue
        inside = set(walk(found[1]))
        backwards = [one for one in find_backwards(program) if one.call in inside]
        optimizers = {name for one in inside if isinstance(one, ast.stmt) and (name := stepped(one)) is not None}
        if len(backwards) == len(optimizers) == 1 and backwards[0].is_plain:
            owned = owned_by(optimizers.pop(), backwards[0].statement, found[0], program)
            if owned:
                yield _Step(call, found[1], backwards[0], owned)


def _is_given(argument: ast.expr, step: _Step) -> bool:
    """Whether a step is given the same value, by the name that it has."""
    name = dotted_name(argument)
    return name is not None and any(dotted_name(one) == name for _, one in arguments_of(step.call, step.function))


def _is_of_second(value: Value, first: _Step, second: _Step, context: Context) -> bool:
    """Whether a value with a graph was made by what the second step trains and the first does not."""
    if not provenance_of(context.program).trace(value).live:
        return False
    makers = {
        maker
        for one in reaching(dotted_name(value.node) or "", value.node, value.file)
        for node in walk(one.node)
        if isinstance(node, ast.Call) and (maker := dotted_name(node.func)) is not None
    }
    return bool(makers & second.owned) and not makers & first.owned


def _uses(name: str, step: _Step, program: Program) -> list[ast.expr]:
    """Where the loss of a step reads a parameter with its graph."""
    backward = step.backward
    lines = [*lineage(backward.loss, backward.statement, backward.file, program), backward.statement]
    return [
        node
        for line in dict.fromkeys(lines)
        if name in reads(line)
        for node in walk(line)
        if isinstance(node, ast.Name) and node.id == name and not _is_cut(node, backward.file)
    ]


def _is_cut(node: ast.Name, file: SourceFile) -> bool:
    above = file.parents.get(node)
    return isinstance(above, ast.Attribute) and above.attr in ("detach", "data", "shape", "size", "dtype", "device")
