"""What a module keeps from call to call is bound anew: `self.mean = self.mean.mul(0.9).add(x)` for `self.mean.mul_(0.9).add_(x)`.

The tensor that an earlier call's graph holds stays as it was; a registered buffer stays registered. A part that is written is
written into a copy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.crash import forward_places
from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.fix.text.rewrite import operand
from explainer.model.patch import Edit
from explainer.model.trace import HIDDEN_WRITE, WRITE
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import statements_of

_SYMBOLS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_NOT_CALLED = ("__init__", "reset", "reset_state", "reset_parameters", "init_weights", "clear")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Update:
    name: str
    edit: Edit
    statement: ast.stmt


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each method that writes the module's own tensors in place, and reads them."""
    if not context.has_failed:
        return
    near = {id(statement) for _, statement in forward_places(context)}
    seen = [statement for kind in (WRITE, HIDDEN_WRITE) for _, statement in traced_places(kind, context)]
    for file, method in context.program.functions():
        owner = context.program.names(file).class_of(method)
        if owner is None or method.name in _NOT_CALLED:
            continue
        updates = list(_updates(file, method, owner, context.program))
        updates = [one for one in updates if one.statement in seen] or updates  # which of them a graph still read
        if not updates:
            continue
        names = " and ".join(dict.fromkeys(f"`{one.name}`" for one in updates))
        is_near = any(id(one) in near for one in statements_of(method))
        yield Proposal(
            edits=tuple(one.edit for one in updates),
            culprit=culprit_of(
                file, updates[0].statement, f"overwrites {names}, which the graph of an earlier call reads"
            ),
            belief=1.0 + (1.0 if is_near else 0.0),
        )


def _updates(file: SourceFile, method: Function, owner: ast.ClassDef, program: Program) -> Iterator[_Update]:
    for statement in statements_of(method):
        found = _augmented(file, statement) or _part(file, statement) or _called(file, statement, program)
        if found is None:
            continue
        name, edit = found
        if _is_state(name, owner, file, program):
            yield _Update(name=name, edit=edit, statement=statement)


def _is_state(name: str, owner: ast.ClassDef, file: SourceFile, program: Program) -> bool:
    """Whether an attribute is a tensor that the class keeps: a registered buffer, or one made by a function of torch."""
    attribute = name.removeprefix("self.")
    names = program.names(file)
    for node in walk(owner):
        is_call = (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "register_buffer"
        )
        if is_call and isinstance(node, ast.Call) and node.args and getattr(node.args[0], "value", None) == attribute:
            return True
    made = [one for one in names.assignments(name, owner) if isinstance(one, ast.Assign)]
    for one in made:
        values = one.value.elts if isinstance(one.value, ast.Tuple) else [one.value]
        called = [names.qualified(value.func) or "" for value in values if isinstance(value, ast.Call)]
        if any(each.startswith("torch.") and not each.startswith("torch.nn.") for each in called):
            return True
    return False


def _own(node: ast.AST | None) -> str | None:
    """`self.name`, nothing longer."""
    name = dotted_name(node)
    return name if name and name.startswith("self.") and name.count(".") == 1 else None


def _augmented(file: SourceFile, statement: ast.stmt) -> tuple[str, Edit] | None:
    name = _own(statement.target) if isinstance(statement, ast.AugAssign) else None
    if name is None or not isinstance(statement, ast.AugAssign):
        return None
    symbol = _SYMBOLS.get(type(statement.op))
    if symbol is None or isinstance(statement.value, ast.Constant):
        return None
    return name, edit_of(file, statement, f"{name} = {name} {symbol} {operand(file, statement.value)}")


def _part(file: SourceFile, statement: ast.stmt) -> tuple[str, Edit] | None:
    """`self.table[i] = x`: into a copy. One copy serves the writes that follow each other."""
    target: ast.expr | None = None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    elif isinstance(statement, ast.AugAssign):
        target = statement.target
    elif (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Attribute)
    ):
        func = statement.value.func
        target = func.value if func.attr.endswith("_") and isinstance(func.value, ast.Subscript) else None
    name = _own(target.value) if isinstance(target, ast.Subscript) else None
    if name is None or not isinstance(target, ast.Subscript) or getattr(target.slice, "value", None).__class__ is str:
        return None
    return (
        None
        if _follows_copy(file, statement, name)
        else (name, insert_before(file, statement, f"{name} = {name}.clone()"))
    )


def _follows_copy(file: SourceFile, statement: ast.stmt, name: str) -> bool:
    """Whether the lines right above make the copy, or write into it."""
    block = next(
        (
            body
            for key in ("body", "orelse")
            if statement in (body := getattr(file.parents.get(statement), key, []) or [])
        ),
        [],
    )
    for one in reversed(block[: block.index(statement)] if statement in block else []):
        if file.segment(one) == f"{name} = {name}.clone()":
            return True
        target = one.targets[0] if isinstance(one, ast.Assign) else None
        if isinstance(target, ast.Subscript) and _own(target.value) == name:
            return True
        if isinstance(one, ast.Assign) and _own(one.targets[0]) == name:
            return False
    return False


def _called(file: SourceFile, statement: ast.stmt, program: Program) -> tuple[str, Edit] | None:
    """A chain of methods that write in place, each without its underscore; `copy_` binds what it was given."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    chain: list[ast.Call] = []
    node: ast.AST | None = call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        chain.append(node)
        node = node.func.value
    bare = node.value if isinstance(node, ast.Attribute) and node.attr == "data" else node
    name = _own(bare)
    methods = [one.func.attr for one in chain if isinstance(one.func, ast.Attribute)]
    if (
        name is None
        or not isinstance(call, ast.Call)
        or not chain
        or not all(each.endswith("_") and not each.startswith("_") for each in methods)
    ):
        return None
    if methods == ["copy_"]:
        value = call.args[0] if len(call.args) == 1 else None
        if not isinstance(value, (ast.Call, ast.BinOp)):
            return None  # a name would share its memory from now on
        is_hidden = bare is not node and not is_without_grad(statement, file, program)
        new = f"{operand(file, value)}.detach()" if is_hidden else file.segment(value)
        return name, edit_of(file, call, f"{name} = {new}")
    if methods == ["zero_"]:
        return name, edit_of(file, call, f"{name} = {name}.new_zeros({name}.shape)")
    if {"copy_", "zero_", "fill_", "detach_", "requires_grad_", "normal_", "uniform_", "retain_grad_"} & set(methods):
        return None
    start, gone = file.span(call)[0], [(end - 1, end) for one in chain for end in (file.span(one.func)[1],)]
    tail = ""
    if bare is not None and node is not None and bare is not node:
        gone.append((file.span(bare)[1], file.span(node)[1]))
        tail = ".detach()"  # what went round autograd by `.data` must not bring a graph into the state now
    text = file.segment(call)
    for first, last in sorted(gone, reverse=True):
        text = text[: first - start] + text[last - start :]
    return name, edit_of(file, call, f"{name} = {text}{tail}")
