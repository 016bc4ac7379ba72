"""A module that keeps its recurrent state from call to call forgets it where a pass over other sequences begins: `model.forget()`.

An evaluation of another batch size meets the state that the training has left, and the next training that of the evaluation. Only
where the module has a method that sets the state to None; it is called before each loop that leads sequences through the module,
or in each round of them where another loop does that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.crash import batches_of, crash_places, message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.walked import Walk, find_walks
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.instance import bases_of
from explainer.source.value.lineage import binds, definitions, statements_of, value_of
from explainer.source.value.resolve import resolver_of

_ROWS = re.compile(r"size of tensor a \(\d+\) must match the size of tensor b \(\d+\) at non-singleton dimension [01]")
_PLAIN = (ast.Assign, ast.AnnAssign, ast.Pass, ast.If, ast.For)
_WHOLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A class that keeps state in attributes, the method that failed with it, and the name of the one that forgets it."""

    owner: ast.ClassDef
    method: Function
    reset: str


def propose(context: Context) -> Iterator[Proposal]:
    """An edit where a module's own state has another batch size than what a loop over sequences gives it."""
    message, program = message_of(context), context.program
    if batches_of(message) is None and not _ROWS.search(message):
        return
    for file, statement in list(raised_at(context))[:1]:
        kept = _kept(file, statement, program)
        walks = find_walks(kept.owner, _runners(kept), program) if kept is not None else ()
        places = {(where, one) for where, one in crash_places(context)}
        failing = next((one for one in walks if _holds(one, places)), None)
        if kept is None or failing is None:
            continue
        edits = _edits(walks, kept)
        if edits and not _is_reset(failing, kept.reset):
            why = f"runs `{failing.name}` on other sequences than those whose state it still keeps"
            yield Proposal(edits=edits, culprit=culprit_of(failing.file, failing.call, why), belief=2.0)


def _holds(one: Walk, places: set[tuple[SourceFile, ast.stmt]]) -> bool:
    inside = set(walk(one.statement))
    return any(where is one.file and statement in inside for where, statement in places)


def _kept(file: SourceFile, statement: ast.stmt, program: Program) -> _Kept | None:
    """The class whose state a failing statement of one of its methods reads, if one method of it forgets all of that."""
    method, owner = program.names(file).function_of(statement), program.names(file).class_of(statement)
    if method is None or owner is None:
        return None
    bound = {name for one in statements_of(method) for name in binds(one) if name.startswith("self.")}
    read = _attributes(statement)
    for name in (one.id for one in walk(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)):
        made = [one for one in definitions(name, statement, method) if isinstance(one, ast.Assign)]
        read |= {each for one in made for each in _attributes(one.value)}
    states = read & bound
    classes = [owner, *bases_of(owner, file, resolver_of(program))]
    methods = [one for each in classes for one in each.body if isinstance(one, ast.FunctionDef)]
    resets = [one.name for one in methods if _forgets(one, method, states, bound)] if states else []
    names = list(dict.fromkeys(resets))
    called = [one for one in names if resolver_of(program).calls_named(one)]
    chosen = names if len(names) == 1 else called
    return _Kept(owner=owner, method=method, reset=chosen[0]) if len(chosen) == 1 else None


def _attributes(node: ast.AST) -> set[str]:
    """The attributes of its own object that a node reads."""
    found = (
        dotted_name(one) or "" for one in walk(node) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load)
    )
    return {one for one in found if one.startswith("self.") and one.count(".") == 1}


def _forgets(one: ast.FunctionDef, method: Function, states: set[str], bound: set[str]) -> bool:
    """Whether a method needs no argument, and does nothing but set states to None, and other things to constants."""
    if one is method or one.name.startswith("__") or one.decorator_list:
        return False
    arguments = one.args
    needed = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    if needed != 1 or any(each is None for each in arguments.kw_defaults) or not arguments.args:
        return False
    body = [each for each in statements_of(one) if not _is_docstring(each)]
    if not all(isinstance(each, _PLAIN) for each in body):
        return False
    emptied = {name for each in body for name in binds(each) if _is_empty(value_of(each, name))}
    others = {name for each in body for name in binds(each)} - emptied - bound
    return states <= emptied and not any(name.startswith("self.") for name in others)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_empty(value: ast.expr | None) -> bool:
    """`None`, a number, `(None, None)`: nothing that has the size of a batch."""
    if isinstance(value, (ast.Tuple, ast.List)):
        return all(_is_empty(one) for one in value.elts)
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Dict) and not value.keys)


def _runners(kept: _Kept) -> frozenset[str]:
    """The methods by which a program runs the one that failed: itself, and those of its class that call it."""
    own = {
        "self" if kept.method.name in ("forward", "__call__") else f"self.{kept.method.name}",
        f"self.{kept.method.name}",
    }
    callers = {
        one.name
        for one in kept.owner.body
        if isinstance(one, ast.FunctionDef)
        and any(isinstance(node, ast.Call) and dotted_name(node.func) in own for node in walk(one))
    }
    return frozenset(callers | {kept.method.name})


def _edits(walks: tuple[Walk, ...], kept: _Kept) -> tuple[Edit, ...]:
    """The calls of the reset that the loops lack; none at all where one of them has no place for it."""
    is_each_round = any(_is_reset_in_round(one, kept.reset) for one in walks)
    edits = []
    for one in walks:
        if _is_reset(one, kept.reset):
            continue
        at = one.round if is_each_round else one.statement
        if at is None or not isinstance(at, (ast.For, *_WHOLE)):
            return ()
        edits.append(insert_before(one.file, at, f"{one.name}.{kept.reset}()"))
    return tuple(dict.fromkeys(edits))


def _is_reset(one: Walk, reset: str) -> bool:
    """Whether a loop's rounds forget the state, or what stands before the loop and is run again each time that it is."""
    if any(_calls(node, reset, one.name) for node in walk(one.loop)):
        return True
    below: ast.AST = one.statement
    above = one.file.parents.get(below)
    while above is not None:
        block = next((body for key in ("body", "orelse") if below in (body := _block(above, key))), [])
        before = block[: block.index(below)] if isinstance(below, ast.stmt) and below in block else []
        for each in reversed(before):
            if _may_run(each, one.name):
                return False
            if any(_calls(node, reset, one.name) for node in walk(each)):
                return True
        if isinstance(above, (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            return False
        below, above = above, one.file.parents.get(above)
    return False


def _may_run(statement: ast.stmt, name: str) -> bool:
    """Whether a statement runs an object, or hands it to what may: then the object keeps that state."""
    calls = [one for one in walk(statement) if isinstance(one, ast.Call)]
    given = [part for one in calls for part in (one.func, *one.args, *(word.value for word in one.keywords))]
    return any(dotted_name(one) in (name, name.partition(".")[0]) for one in given)


def _block(node: ast.AST, key: str) -> list[ast.stmt]:
    found = getattr(node, key, None)
    return found if isinstance(found, list) else []


def _is_reset_in_round(one: Walk, reset: str) -> bool:
    body = one.loop.body if isinstance(one.loop, ast.For) else []
    return any(isinstance(each, ast.Expr) and _calls(each.value, reset, one.name) for each in body)


def _calls(node: ast.AST, reset: str, name: str) -> bool:
    """Whether a node calls the reset of an object, or of what holds it."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != reset:
        return False
    owner = dotted_name(node.func.value) or ""
    return name == owner or name.startswith(f"{owner}.")
