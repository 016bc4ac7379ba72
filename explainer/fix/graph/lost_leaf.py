"""Leaves that nothing holds once a result is computed from them: `delta = project(torch.zeros(3).requires_grad_())`.

Where the `.grad` of such a result is read it is None. The gradient that the program reads is that of the result, so the flag
belongs on the result; what the leaf would have got, nothing could read.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.crash import warned_at
from explainer.fix.clue.failure import failing_statements
from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.graph.leaf import flags, is_leaf_call, without_flag
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.model.trace import LOST_LEAF
from explainer.source.file import SourceFile
from explainer.source.name import Function, Names, dotted_name
from explainer.source.network.anew import PARAMETER
from explainer.source.network.module import inherits_module
from explainer.source.program import Program
from explainer.source.tree import start_of, walk
from explainer.source.value.binding import Value, all_parameters, bounds_of, scope_of, walk_scope
from explainer.source.value.resolve import resolver_of

_NO_LEAF = "that is not a leaf Tensor"
_ITSELF = frozenset(
    {"to", "cuda", "cpu", "float", "double", "half", "bfloat16"}
)  # may give the tensor that they are called on
_QUIET = frozenset({"data", "requires_grad", "shape", "dtype", "device", "is_leaf"})
_DEPTH = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LostLeaf:
    """A result that a leaf was lost in; `statement` returns it or gives it a name."""

    result: ast.expr
    statement: ast.Return | ast.Assign
    file: SourceFile
    edits: tuple[Edit, ...]

    def is_named(self, owner: ast.expr, file: SourceFile) -> bool:
        """Whether it is bound to the name whose gradient an expression of the same scope reads."""
        if not isinstance(self.statement, ast.Assign) or self.file is not file:
            return False
        name = dotted_name(owner)
        return dotted_name(self.statement.targets[0]) == name and scope_of(owner, file) is scope_of(self.result, file)


def of_gradients(seen: set[ast.AST], context: Context) -> Iterator[Proposal]:
    """An edit for each lost leaf whose result's gradient was read, where torch warned that it is no leaf's, or a trace saw it made."""
    program = context.program
    is_warned = any(_NO_LEAF in one.message for one in context.incident.warnings)
    traced = list(traced_places(LOST_LEAF, context))
    owners = _owners(context) if is_warned else []
    lost = [one for one in _find_lost(program) if one.result not in seen] if owners or traced else []
    linked = [
        one for one in lost
        if (one.file, one.statement) in traced or any(_is_read(one, owner, program) for owner in owners)
    ]  # fmt: skip
    # What a registry or a setting picks no resolver follows: there the only one of the program is meant.
    alone = lost if len(lost) == 1 and any(_is_picked(owner, program) for owner in owners) else []
    for one in linked or alone:
        why = "computes what is to have a gradient from the leaf, which nothing else holds"
        culprit = culprit_of(one.file, one.result, why)
        yield Proposal(edits=one.edits, culprit=culprit, belief=2.4 if linked else 1.8)


def _owners(context: Context) -> list[Value]:
    """What the failing statement reads a gradient of."""
    places = [*failing_statements(context)[:1], *warned_at(_NO_LEAF, context)]
    return [
        Value(node.value, file)
        for file, statement in dict.fromkeys(places)
        for node in walk(statement)
        if isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load)
    ]


def _is_read(lost: LostLeaf, owner: Value, program: Program) -> bool:
    if lost.is_named(owner.node, owner.file):
        return True
    function = program.names(lost.file).function_of(lost.result)
    if function is None or not _is_returned(lost, function):
        return False
    resolver = resolver_of(program)
    targets = [resolver.function_of(call, one) for call, one in _calls_behind(owner, program)]
    return any(target is not None and target[1] is function for target in targets)


def _calls_behind(owner: Value, program: Program) -> Iterator[tuple[ast.Call, Value]]:
    """The calls that a name is bound to."""
    for one in resolver_of(program).behind(owner):
        if isinstance(one.node, ast.Call):
            yield one.node, one


def _is_picked(owner: Value, program: Program) -> bool:
    """Whether a name is bound to the call of an object that is not known: `self.start(images)`."""
    return any(_runs_object(call, one.file, program) for call, one in _calls_behind(owner, program))


def _is_returned(lost: LostLeaf, function: Function) -> bool:
    if isinstance(lost.statement, ast.Return):
        return True
    name = dotted_name(lost.statement.targets[0])
    return any(
        isinstance(one, ast.Return) and one.value is not None and dotted_name(one.value) == name
        for one in walk_scope(function)
    )


def _find_lost(program: Program) -> Iterator[LostLeaf]:
    for file in program.parsed():
        if "requires_grad" not in file.text:
            continue
        names = program.names(file)
        for node in file.walk():
            is_bound = isinstance(node, ast.Assign) and len(node.targets) == 1
            if not isinstance(node, ast.Return) and not is_bound:
                continue
            assert isinstance(node, (ast.Return, ast.Assign))
            result = node.value
            if isinstance(result, (ast.Call, ast.BinOp, ast.Subscript)) and not _is_flagged(result, node, names):
                edits = _edits(result, node, file, program)
                if edits is not None:
                    yield LostLeaf(result=result, statement=node, file=file, edits=edits)


def _is_flagged(result: ast.expr, statement: ast.stmt, names: Names) -> bool:
    """Whether a result is a leaf already, or is flagged behind its statement."""
    if isinstance(result, ast.Call) and is_leaf_call(result, names):
        return True
    name = dotted_name(statement.targets[0]) if isinstance(statement, ast.Assign) else None
    function = names.function_of(result)
    return name is not None and function is not None and any(
        isinstance(one, ast.stmt) and flags(one, name) and start_of(one) > start_of(statement)
        for one in walk_scope(function)
    )  # fmt: skip


def _edits(result: ast.expr, statement: ast.stmt, file: SourceFile, program: Program) -> tuple[Edit, ...] | None:
    """The edits that flag a result in the place of the leaf that it is computed from; None where there is no such leaf."""
    names = program.names(file)
    inner = [
        one for one in walk(result) if isinstance(one, ast.Call) and one is not result and is_leaf_call(one, names)
    ]
    if len(inner) > 1 or any(names.is_call(one, *PARAMETER) for one in inner):
        return None
    if inner and _name_flagged(inner[0]) is None:
        return _moved(result, inner[0], file)
    name = _name_flagged(inner[0]) if inner else _leaf_read(result, statement, file, names)
    if name is None or not _is_lost(name, statement, file):
        return None
    if inner:
        return _moved(result, inner[0], file)
    bound = [one.node for one in bounds_of(scope_of(result, file)) if one.name == name and not one.fills]
    if len(bound) == 1 and isinstance(bound[0], ast.Call) and is_leaf_call(bound[0], names):
        return _moved(result, bound[0], file)
    if any(_runs_object(one, file, program) for one in walk(result) if isinstance(one, ast.Call)):
        return None  # `detach` would take away what a network's parameters get
    return (put_method(file, result, ".detach().requires_grad_(True)"),)


def _moved(result: ast.expr, leaf: ast.Call, file: SourceFile) -> tuple[Edit, ...] | None:
    """The flag taken from the leaf and put on the result: what has a graph of its own stays as it is."""
    text = without_flag(leaf, file)
    if text is None:
        return None
    low, high = file.span(result)
    start, end = file.span(leaf)
    if not low <= start < high:
        return edit_of(file, leaf, text), put_method(file, result, ".requires_grad_(True)")
    whole = file.text[low:start] + text + file.text[end:high]
    whole = f"({whole})" if isinstance(result, ast.BinOp) else whole
    return (edit_of(file, result, f"{whole}.requires_grad_(True)"),)


def _name_flagged(leaf: ast.Call) -> str | None:
    """The name that `x.requires_grad_()` flags, also through what may give `x` itself: `x.to(device).requires_grad_()`."""
    node: ast.expr = leaf
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node is not leaf and node.func.attr not in _ITSELF and not node.func.attr.endswith("_"):
            return None
        node = node.func.value
    # `torch.zeros(3, requires_grad=True)` makes its tensor.
    return dotted_name(node) if node is not leaf and _is_flag(leaf) else None


def _is_flag(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_"


def _leaf_read(result: ast.expr, statement: ast.stmt, file: SourceFile, names: Names) -> str | None:
    """The one name in a result that was bound to a leaf, or flagged, before its statement."""
    scope = scope_of(result, file)
    read = {one.id for one in walk(result) if isinstance(one, ast.Name)}
    before = [
        one for one in walk_scope(scope) if isinstance(one, ast.stmt) and start_of(one) < start_of(statement)
    ]  # fmt: skip
    found = {name for name in read if any(_makes_leaf(one, name, names) for one in before)}
    return found.pop() if len(found) == 1 else None


def _makes_leaf(statement: ast.stmt, name: str, names: Names) -> bool:
    if flags(statement, name):
        return True
    is_bound = isinstance(statement, ast.Assign) and dotted_name(statement.targets[0]) == name
    value = statement.value if isinstance(statement, ast.Assign) and is_bound else None
    if not isinstance(value, ast.Call) or not is_leaf_call(value, names) or names.is_call(value, *PARAMETER):
        return False
    return not _is_flag(value) or _name_flagged(value) in (None, name)


def _is_lost(name: str, statement: ast.stmt, file: SourceFile) -> bool:
    """Whether nothing but one statement reads a leaf, and no caller has it."""
    scope = scope_of(statement, file)
    if "." in name or isinstance(scope, ast.Lambda):
        return False
    bound = [one for one in bounds_of(scope) if one.name == name and start_of(one.statement) < start_of(statement)]
    is_given = not isinstance(scope, ast.Module) and name in all_parameters(scope)
    if is_given and all(one.fills for one in bound):
        return False
    own = set(walk(statement))
    is_anew = isinstance(statement, ast.Assign) and dotted_name(statement.targets[0]) == name
    others = [
        one for one in walk(scope)
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load) and one not in own
        and not (is_anew and start_of(one) > start_of(statement)) and not _is_parameter(one, file)
    ]  # fmt: skip
    return bool(bound) and all(_is_quiet(one, file) or _is_of_its_own(one, name, file) for one in others)


def _is_parameter(read: ast.Name, file: SourceFile) -> bool:
    """Whether a name is another one: a parameter of the function around its read, that nothing there binds."""
    around = scope_of(read, file)
    is_bound = any(one.name == read.id for one in bounds_of(around))
    return not isinstance(around, ast.Module) and read.id in all_parameters(around) and not is_bound


def _is_quiet(read: ast.Name, file: SourceFile) -> bool:
    """Whether a read keeps nothing of a tensor: `delta.data`, `delta.uniform_(-1, 1)` and the flag itself, as statements."""
    above = file.parents.get(read)
    if not isinstance(above, ast.Attribute):
        return False
    statement = file.statement(read)
    is_call = (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and statement.value.func is above
    )
    return above.attr in _QUIET or (is_call and above.attr.endswith("_"))


def _is_of_its_own(read: ast.Name, name: str, file: SourceFile) -> bool:
    """Whether a read stands in a binding of the same name: `x = x.clone().requires_grad_()`."""
    statement = file.statement(read)
    return isinstance(statement, ast.Assign) and dotted_name(statement.targets[0]) == name


def _runs_object(call: ast.AST, file: SourceFile, program: Program, depth: int = 0) -> bool:
    """Whether a call, or one in the function that it runs, is that of an object, which may be a network: `net(x)`, `self.net(x)`."""
    if not isinstance(call, ast.Call):
        return False
    names, resolver = program.names(file), resolver_of(program)
    target = resolver.function_of(call, Value(call, file))
    if target is not None:
        nodes = walk(target[1]) if depth < _DEPTH else ()
        return any(_runs_object(one, target[0], program, depth + 1) for one in nodes)
    name = dotted_name(call.func)
    if name is None:
        return not isinstance(call.func, ast.Attribute)
    if "." not in name:
        return name not in names.imports and not hasattr(builtins, name)
    if name.startswith("self."):
        return name.count(".") == 1
    assert isinstance(call.func, ast.Attribute)
    return any(
        inherits_module(owner, where, program) for where, owner in resolver.classes_of(Value(call.func.value, file))
    )
