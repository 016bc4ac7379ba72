"""Keeps parameters in a list where a generator of them is used up before the optimizer gets it, and filters by names that exist.

`trainable = filter(f, model.parameters())` that is counted first becomes `[p for p in ...]`; `if "classifier" in name` of a
model that has no such part takes the part that it has.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.used_up import listed
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.freeze import owner_of
from explainer.source.network.module import head_of, parts_of
from explainer.source.network.walked_once import gives_parameters_once
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, scope_of, walk_scope
from explainer.source.value.resolve import resolver_of

_USES_UP = frozenset({"sum", "list", "len", "tuple", "max", "min", "any", "all", "sorted", "enumerate", "set"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each generator of parameters that is read twice, and for each filter that fits no name."""
    if not context.has_failed:
        return
    fact = context.incident.fact("live_exhausted")
    exhausted = frozenset(fact.value.split(", ")) if fact is not None else frozenset[str]()
    for file in context.program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Assign) and (
                gives_parameters_once(node.value, file, context.program) or _is_seen(node, exhausted, file, context)
            ):
                yield from _used_up(node, file)
            elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
                yield from _fits_nothing(node, file, context)


def _is_seen(node: ast.Assign, exhausted: frozenset[str], file: SourceFile, context: Context) -> bool:
    """Whether a function on the way to the failure gave a name an iterator that is at its end there."""
    if not isinstance(node.value, ast.Call) or dotted_name(node.targets[0]) not in exhausted:
        return False
    scope = scope_of(node, file)
    return any(one is file and scope_of(at, one) is scope for one, at in crash_places(context))


def _used_up(node: ast.Assign, file: SourceFile) -> Iterator[Proposal]:
    """A generator under a name that is read more than once."""
    name = dotted_name(node.targets[0])
    scope = scope_of(node, file)
    reads = [
        one
        for one in walk_scope(scope)
        if isinstance(one, (ast.Name, ast.Attribute)) and dotted_name(one) == name and isinstance(one.ctx, ast.Load)
    ]
    if name is None or len(reads) < 2 or len([one for one in bounds_of(scope) if one.name == name]) != 1:
        return
    why = f"`{name}` is a generator: what reads it first leaves nothing for the optimizer"
    yield Proposal(
        edits=(edit_of(file, node.value, listed(node.value, file)),),
        culprit=culprit_of(file, node, why),
        belief=2.0,
    )


def _fits_nothing(node: ast.ListComp | ast.GeneratorExp, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`[p for name, p in model.named_parameters() if "classifier" in name]` of a model without a classifier."""
    part = node.generators[0]
    owner = owner_of(part.iter)
    tests = [one for test in part.ifs for one in walk(test) if isinstance(one, ast.Constant)]
    words = [one for one in tests if isinstance(one.value, str)]
    if owner is None or len(words) != 1 or any(isinstance(one, ast.Not) for test in part.ifs for one in walk(test)):
        return
    names = _names_of(owner, file, context)
    word = words[0]
    text = str(word.value).strip(".")
    if not names or any(text in one or one in text for one in names):
        return
    alike = difflib.get_close_matches(text, names, 1, 0.6)
    meant = alike[0] if alike else head_of(names)
    quote = file.segment(word)[0]
    if meant is not None and quote in "'\"":
        yield Proposal(
            edits=(edit_of(file, word, f"{quote}{meant}{'.' if str(word.value).endswith('.') else ''}{quote}"),),
            culprit=culprit_of(file, part.ifs[0], f'asks for "{text}", which no parameter of the model is called'),
            belief=2.0,
        )


def _names_of(owner: ast.expr, file: SourceFile, context: Context) -> list[str]:
    """The names of a module's parts: those of its class, or those that `add_module` gave it."""
    found = resolver_of(context.program).classes_of(Value(owner, file))
    if len(found) == 1:
        return parts_of(found[0][1], found[0][0], context.program)
    added = [
        one.args[0].value
        for one in file.walk()
        if isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr == "add_module"
        and dotted_name(one.func.value) == dotted_name(owner)
        and one.args
        and isinstance(one.args[0], ast.Constant)
    ]
    return [str(one) for one in added]
