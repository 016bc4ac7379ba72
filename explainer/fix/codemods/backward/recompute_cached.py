"""Computes anew what a cache keeps with the graph of its first use: a cached property, a memoised function, an attribute.

What is made from parameters changes with each step, and its graph is gone after the first backward. The cache goes; every
call then computes the value and its graph. A cache that holds random numbers stays, and so does one that the program empties
itself, but for a rule with `emptied`: a checkpoint's replay finds even such a cache full that its first pass found empty.
Where a trace saw the second backward meet it before any step, the graph of what an emptied cache holds is kept for that step;
where it saw a later step meet it, the cache is emptied too seldom, and a module in training fills it anew.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypedDict

from explainer.fix.clue.crash import is_crash
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.graph.uncut import dedent
from explainer.fix.text.argument import add_keyword
from explainer.model.patch import Edit
from explainer.model.trace import MADE_ONCE, ONCE_IN_STEP
from explainer.source.file import SourceFile
from explainer.source.loop.backward import find_backwards
from explainer.source.name import Function, Names, dotted_name
from explainer.source.network.module import inherits_module
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, walk_scope
from explainer.source.value.provenance import provenance_of

_PROPERTY = frozenset({"functools.cached_property", "cached_property", "django.utils.functional.cached_property"})
_MEMO = frozenset({"functools.lru_cache", "functools.cache"})
_RANDOM = frozenset(
    {"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "bernoulli", "multinomial", "normal", "normal_"}
    | {"uniform_", "bernoulli_", "dropout", "sample", "rsample", "random_", "exponential_", "gumbel_softmax"}
)
_BY_KEY = "right where what made the values is to be trained; features that are meant as constants are detached instead"
_EMPTIES = frozenset({"cache_clear", "clear", "pop", "popitem", "__delattr__"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each cache whose value is made from parameters; one by a key may hold features that were meant as constants."""
    if not context.has_failed:
        return
    for file, function in context.program.functions():
        yield from _decorated(file, function, context)
        for node in walk_scope(function):
            if isinstance(node, ast.If):
                yield from _guarded(node, file, function, context)


def _decorated(file: SourceFile, function: Function, context: Context) -> Iterator[Proposal]:
    """`@cached_property` becomes `@property`, `@lru_cache` goes."""
    program, names = context.program, context.program.names(file)
    for one in function.decorator_list:
        called = names.qualified(one.func if isinstance(one, ast.Call) else one) or ""
        if called not in _PROPERTY | _MEMO or not _is_live(function, file, program):
            continue
        is_kept = _spans_steps(context) or not _is_emptied(function.name, program)
        if _is_random(function) or _binds_attributes(function) or not is_kept:
            return
        edit = edit_of(file, one, "property") if called in _PROPERTY else _without(one, file)
        yield Proposal(
            edits=(edit,),
            culprit=culprit_of(
                file, one, f"keeps what `{function.name}` makes from parameters, with the graph of its first use"
            ),
            belief=2.0,
            **_doubt(has_key=called in _MEMO and len(_parameters(function)) > 0),
        )


class _Doubt(TypedDict, total=False):
    applicability: str
    because: str


def _doubt(*, has_key: bool) -> _Doubt:
    return {"applicability": "unsafe", "because": _BY_KEY} if has_key else {}


def _parameters(function: Function) -> list[str]:
    """The parameters of a function apart from its object."""
    given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return [one.arg for one in given if one.arg not in ("self", "cls")]


def _without(decorator: ast.expr, file: SourceFile) -> Edit:
    """The lines of a decorator, taken out."""
    start = file.line_start(decorator.lineno)
    return Edit(file=file.path, start=start, end=file.line_start((decorator.end_lineno or 0) + 1), new="")


def _is_live(function: Function, file: SourceFile, program: Program) -> bool:
    """Whether a function returns what parameters are in, with a graph."""
    provenance = provenance_of(program)
    return any(
        isinstance(node, ast.Return) and node.value is not None and provenance.trace(Value(node.value, file)).live
        for node in walk_scope(function)
    )


def _guarded(guard: ast.If, file: SourceFile, function: Function, context: Context) -> Iterator[Proposal]:
    """`if self.x is None: self.x = ...` loses its condition where the value is made from parameters."""
    program = context.program
    kept = _kept(guard.test, program.names(file))
    if kept is None or guard.orelse or function.name in ("__init__", "setup", "build", "reset_parameters"):
        return
    bound = [one for one in guard.body if isinstance(one, ast.Assign)]
    if len(bound) != len(guard.body) or guard.body[0].lineno == guard.lineno:
        return
    last = bound[-1]
    if len(last.targets) != 1 or ast.unparse(last.targets[0]) != kept:
        return
    if not provenance_of(program).trace(Value(last.value, file)).live or _is_random(guard):
        return
    root = kept.partition("[")[0]
    is_kept = not (_is_emptied(root.rpartition(".")[2], program) or _is_reset(root, guard, file, program))
    if not is_kept and not context.options.get("emptied"):
        yield from _for_this_step(context)
        if not _spans_steps(context) or _is_recurrence(root, guard, program):
            return
        if _is_of_module(guard, file, program):
            yield from _in_training(guard, kept, last, file)
            return
    head = Edit(file=file.path, start=file.line_start(guard.lineno), end=file.line_start(guard.body[0].lineno), new="")
    yield Proposal(
        edits=(head, *dedent(file, guard.body, file.indent(guard.lineno))),
        culprit=culprit_of(file, last, f"keeps `{kept}`, made from parameters, with the graph of its first use"),
        belief=1.9,
        **_doubt(has_key="[" in kept),
    )


def _spans_steps(context: Context) -> bool:
    """Whether a trace saw a later step meet what an earlier one made: the program empties the cache too seldom."""
    facts = {one.name for one in context.incident.facts}
    return MADE_ONCE in facts and ONCE_IN_STEP not in facts


def _is_of_module(guard: ast.If, file: SourceFile, program: Program) -> bool:
    owner = file.enclosing(guard, ast.ClassDef)
    return isinstance(owner, ast.ClassDef) and inherits_module(owner, file, program)


def _in_training(guard: ast.If, kept: str, last: ast.Assign, file: SourceFile) -> Iterator[Proposal]:
    """`if self.training or self.x is None:` for a cache of a module that the program empties, but not for each step."""
    if any(isinstance(one, ast.Attribute) and one.attr == "training" for one in walk(guard.test)):
        return
    at, doubt = file.span(guard.test)[0], _doubt(has_key="[" in kept)
    yield Proposal(
        edits=(Edit(file=file.path, start=at, end=at, new="self.training or "),),
        culprit=culprit_of(file, last, f"keeps `{kept}`, made from parameters, over several steps, with its graph"),
        belief=1.9,
        title=f"Fill the cache anew in training: `if self.training or {file.segment(guard.test)}:`",
        applicability=doubt.get("applicability"),
        because=doubt.get("because", "each step then has a graph of its own; an evaluation goes on using the cache"),
    )


def _is_recurrence(name: str, guard: ast.If, program: Program) -> bool:
    """Whether anything but an empty value is put where the guard puts its own: a state, which goes on from step to step."""
    last = name.rpartition(".")[2]
    inside = set(walk(guard))
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and node.attr == last
        and node not in inside
        and not _is_empty(file.parents.get(node))
        for file in program.parsed()
        for node in file.walk()
    )


def _is_empty(statement: ast.AST | None) -> bool:
    """`self.x = None`, `self.x = {}`, `self.x: Tensor | None = None`."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return False
    value = statement.value
    is_dict = isinstance(value, ast.Dict) and not value.keys
    is_call = (
        isinstance(value, ast.Call) and not value.args and getattr(value.func, "id", "") in ("dict", "OrderedDict")
    )
    return is_dict or is_call or (isinstance(value, ast.Constant) and value.value is None)


def _for_this_step(context: Context) -> Iterator[Proposal]:
    """`loss.backward(retain_graph=True)` for each of the losses that share what is made anew for the next step."""
    if all(one.name != ONCE_IN_STEP for one in context.incident.facts):
        return
    for backward in find_backwards(context.program):
        if backward.is_plain and backward.retains is None and is_crash(backward.file, backward.call, context):
            yield Proposal(
                edits=(add_keyword(backward.file, backward.call, "retain_graph=True"),),
                culprit=culprit_of(
                    backward.file, backward.call, "frees the graph of what the losses of one step share"
                ),
                belief=1.8,
                title="Keep the graph for the other losses of this step: `loss.backward(retain_graph=True)`",
                because="the cache is emptied with each step, so that no loss goes through old weights",
            )


def _kept(test: ast.expr, names: Names) -> str | None:
    """What a condition finds missing: `self.x` of `self.x is None` and `not hasattr(self, "x")`, `c[k]` of `k not in c`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return _kept(test.values[0], names)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        other = test.comparators[0]
        if isinstance(test.ops[0], ast.Is) and isinstance(other, ast.Constant) and other.value is None:
            name = dotted_name(test.left)
            return name if name and name.startswith("self.") else None
        if isinstance(test.ops[0], ast.NotIn) and dotted_name(other):
            return f"{dotted_name(other)}[{ast.unparse(test.left)}]"
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and isinstance(test.operand, ast.Call):
        call = test.operand
        if names.qualified(call.func) == "hasattr" and len(call.args) == 2 and isinstance(call.args[1], ast.Constant):
            return f"{dotted_name(call.args[0])}.{call.args[1].value!s}"
    return None


def _is_random(node: ast.AST) -> bool:
    """Whether anything in it draws: two calls of one step would then not give the same."""
    return any(
        isinstance(one, ast.Call) and getattr(one.func, "attr", getattr(one.func, "id", "")).lower() in _RANDOM
        for one in walk(node)
    )


def _binds_attributes(function: Function) -> bool:
    """Whether a function changes its object besides giving a value."""
    return any(
        isinstance(one, ast.Attribute) and isinstance(one.ctx, (ast.Store, ast.Del)) for one in walk_scope(function)
    )


def _is_emptied(name: str, program: Program) -> bool:
    """Whether the program empties the cache: `del x.name`, `x.__dict__.pop("name")`, `name.cache_clear()`."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Del) and node.attr == name:
                return True
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Name) and node.func.id == "delattr" and _says(node, name):
                return True
            if isinstance(node.func, ast.Attribute) and node.func.attr in _EMPTIES:
                owner = (dotted_name(node.func.value) or "").rpartition(".")[2]
                if owner == name or (owner == "__dict__" and _says(node, name)):
                    return True
    return False


def _says(call: ast.Call, name: str) -> bool:
    return any(isinstance(one, ast.Constant) and one.value == name for one in call.args)


def _is_reset(name: str, guard: ast.If, file: SourceFile, program: Program) -> bool:
    """Whether anything but a constructor and the guard itself binds the name anew, in this file or on an object elsewhere."""
    last = name.rpartition(".")[2]
    inside = set(walk(guard))
    for where in program.parsed():
        for node in where.walk():
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)) and node.attr == last:
                function = program.names(where).function_of(node)
                if node not in inside and (function is None or function.name != "__init__"):
                    return True
            is_own = (
                where is file and isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
            )
            if is_own and program.names(where).function_of(node) is not None:
                return True
    return False
