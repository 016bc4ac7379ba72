"""A parameter is updated or initialised under `torch.no_grad()`: the write is then no part of a graph, and the leaf stays one.

Only where the write is an update of values: one that reads `.grad`, one outside of a forward, or in a method that builds the
module. An optimizer's own `step` gets the decorator that those of torch have. Where the loss is meant to go through the write,
the tensor is written out of place instead (`write_out_of_place`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.crash import crash_places
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.fix.text.rewrite import spell, under_no_grad
from explainer.fix.write.aliased_average import aliased_average
from explainer.fix.write.hand_moved import MAKERS, hand_moved, is_inner_step, reads_gradient
from explainer.source.file import SourceFile
from explainer.source.graph.alias import is_returned
from explainer.source.graph.write import is_without_grad
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import binds, block_of, changes, definitions, root_of, scope_of, value_of
from explainer.source.value.resolve import resolver_of

_FORWARD = ("forward", "__call__", "training_step", "compute_loss")
_SHARED = "the optimizer moves it too: right where it is given the other parameters alone"
_INNER = (
    "the optimizer moves it too: the inner steps of one task would go on from those of the last; MAML steps a copy, by a graph "
    "of the steps or by the first order, Reptile the weights themselves"
)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the write to a leaf that raised, with the like writes beside it."""
    if not context.has_failed:
        return
    for file, statement in crash_places(context):
        if is_without_grad(statement, file, context.program) or not _is_write(statement):
            return
        if aliased_average(statement, file, context.program) is not None:
            return  # what is averaged would be the model itself
        function = context.program.names(file).function_of(statement)
        leaf = _leaf(statement, file, context.program) or _of_another(statement)
        is_step = function is not None and _is_optimizer_step(function, file, context.program)
        is_of_gradient = reads_gradient(statement) or is_step or _is_stepped(statement, function)
        if not is_of_gradient and (leaf is None or _is_used_after(statement, function)):
            return
        why = f"writes {leaf or 'a parameter'} in place with grad mode on"
        culprit = culprit_of(file, statement, why)
        if is_step or (leaf is not None and _is_whole_initialiser(function, file, context.program)):
            assert function is not None
            names = context.program.names(file)
            edit = insert_before(file, function, f"@{spell(names, 'torch.no_grad')}()")
            yield _unless_shared(Proposal(edits=(edit,), culprit=culprit, belief=2.0), statement, file, context)
            return
        row = _row(file, statement, context.program)
        loop = file.enclosing(statement, ast.For)
        if isinstance(loop, ast.For) and _is_stepped(statement, function) and not _is_all_of(row, loop):
            row = [loop]
        edits = under_no_grad(file, row, context.program.names(file))
        yield _unless_shared(Proposal(edits=edits, culprit=culprit, belief=2.0), statement, file, context)
        return


def _unless_shared(proposal: Proposal, statement: ast.stmt, file: SourceFile, context: Context) -> Proposal:
    """The proposal, which is shown only where an optimizer moves the parameter too."""
    if is_inner_step(statement, file, context.program):
        return replace(proposal, applicability="display", because=_INNER)
    if hand_moved(statement, file, context.program) is None:
        return proposal
    return replace(proposal, applicability="display", because=_SHARED)


def _is_write(statement: ast.stmt) -> bool:
    return bool(changes(statement)) or isinstance(statement, ast.AugAssign)


def _is_optimizer_step(function: Function, file: SourceFile, program: Program) -> bool:
    """Whether a function is the `step` of an optimizer that the program writes, whose closure, if it calls one, has grad mode on."""
    names = program.names(file)
    owner = names.class_of(function)
    if owner is None or function.name != "step" or function.decorator_list:
        return False
    if not any((names.qualified(base) or "").startswith("torch.optim.") for base in owner.bases):
        return False
    closures = [node for node in walk(function) if isinstance(node, ast.Call) and dotted_name(node.func) == "closure"]
    return all(_has_grad_mode(node, file, program) for node in closures)


def _has_grad_mode(node: ast.AST, file: SourceFile, program: Program) -> bool:
    block = file.enclosing(node, ast.With)
    return isinstance(block, ast.With) and any(
        program.names(file).is_call(item.context_expr, "torch.enable_grad") for item in block.items
    )


def _is_stepped(statement: ast.stmt, function: Function | None) -> bool:
    """Whether the function reads the gradient of what the statement writes: `p.mul_(1 - lr * decay)`, then `p.add_(p.grad)`."""
    name = dotted_name(_target(statement))
    return (
        name is not None
        and function is not None
        and any(
            isinstance(node, ast.Attribute) and node.attr == "grad" and dotted_name(node.value) == name
            for node in walk(function)
        )
    )


def _is_used_after(statement: ast.stmt, function: Function | None) -> bool:
    """Whether the value that is written goes on to the loss: in a forward, or where what is returned is made from it."""
    if function is None:
        return False
    gives = any(isinstance(one, ast.Return) and one.value is not None for one in walk(function))
    if function.name in _FORWARD and (gives or function.name != "__call__"):
        return True
    node = _target(statement)
    while isinstance(node, ast.Subscript):
        node = node.value
    name = dotted_name(node)
    return name is not None and "." not in name and is_returned(function, name)


def _is_all_of(row: list[ast.stmt], loop: ast.For) -> bool:
    """Whether a row of writes is all that a loop writes to what it walks."""
    walked = {node.id for node in walk(loop.target) if isinstance(node, ast.Name)}
    others = [node for node in walk(loop) if isinstance(node, ast.stmt) and node not in row and _is_write(node)]
    return not any(dotted_name(_target(one)) in walked for one in others)


def _target(statement: ast.stmt) -> ast.expr | None:
    if isinstance(statement, ast.AugAssign):
        return statement.target
    if isinstance(statement, ast.Assign):
        return statement.targets[0]
    func = statement.value.func if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None
    return func.value if isinstance(func, ast.Attribute) else None


def _leaf(statement: ast.stmt, file: SourceFile, program: Program) -> str | None:
    """The parameter that a statement writes, itself or through a view, as the user calls it; None where it is none."""
    node = _target(statement)
    for _ in range(6):
        while isinstance(node, (ast.Subscript, ast.Call)):
            if _is_got_by_name(node):
                return f"`{file.segment(node)}`"
            node = _viewed(node, file, program)
        if isinstance(node, ast.Attribute) and node.attr in ("weight", "bias"):
            return f"`{file.segment(node)}`"
        name = dotted_name(node)
        if name is None:
            return None
        value = _made(name, statement, file, program)
        if value is None:
            return f"`{name}`" if _is_walked(name, statement, file) else None
        if (
            program.names(file).is_call(value, *MAKERS)
            or _requires_grad(value)
            or _is_held_weakly(value, file, program)
        ):
            return f"`{name}`"
        node = value
    return None


def _is_got_by_name(node: ast.expr) -> bool:
    """`model.get_parameter("head.weight")`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get_parameter"


def _is_held_weakly(value: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a value is what a weak reference of the object leads to, `self.weight()`: what raised is a leaf that another one owns."""
    if not isinstance(value, ast.Call) or value.args or value.keywords:
        return False
    made = _made(dotted_name(value.func) or "", file.statement(value), file, program)
    return made is not None and program.names(file).is_call(made, "weakref.ref")


def _viewed(node: ast.Subscript | ast.Call, file: SourceFile, program: Program) -> ast.expr | None:
    """What an expression is a view of: `p` of `p[0]`, of `p.view(4, -1)`, and of `gate(p, "f")` where that returns a view of it."""
    if isinstance(node, ast.Subscript):
        return node.value
    if isinstance(node.func, ast.Attribute):
        return node.func.value
    resolver, value = resolver_of(program), Value(node, file)
    target = resolver.function_of(node, value)
    made = resolver.returns_of(target, node, value) if target is not None else []
    given = made[0].arguments.get(root_of(made[0].node) or "") if len(made) == 1 else None
    return given.node if given is not None and given.file is file else None


def _of_another(statement: ast.stmt) -> str | None:
    """`engine.model.scale`: what raised is a leaf, and one that another object owns is state of it, no value of a forward."""
    node = _target(statement)
    while isinstance(node, ast.Subscript):
        node = node.value
    name = dotted_name(node) or ""
    return f"`{name}`" if name.count(".") > (1 if name.startswith("self.") else 0) else None


def _made(name: str, at: ast.stmt, file: SourceFile, program: Program) -> ast.expr | None:
    scope, owner = scope_of(at, file, program), program.names(file).class_of(at)
    if name.startswith("self.") and owner is not None:
        return program.names(file).attribute_value(owner, name.removeprefix("self."))
    made = definitions(name, at, scope) if scope is not None else []
    first = next((one for one in made if name in binds(one) and isinstance(one, ast.Assign)), None)
    if first is None and file.tree is not None and scope is not file.tree:
        outer = [one for one in file.tree.body if name in binds(one) and isinstance(one, ast.Assign)]
        first = outer[-1] if outer else None
    return value_of(first, name) if first is not None else None


def _is_walked(name: str, at: ast.stmt, file: SourceFile) -> bool:
    """Whether a loop hands the name out: what raised is a leaf, and a new tensor would not reach the container that it is in."""
    above = file.enclosing(at, ast.For)
    while isinstance(above, ast.For):
        if name in {node.id for node in walk(above.target) if isinstance(node, ast.Name)}:
            return True
        above = file.enclosing(above, ast.For)
    return False


def _requires_grad(value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Attribute) and value.func.attr == "requires_grad_":
        return True
    return any(one.arg == "requires_grad" and getattr(one.value, "value", None) is True for one in value.keywords)


def _is_whole_initialiser(function: Function | None, file: SourceFile, program: Program) -> bool:
    """Whether a method does nothing but set values: no forward of a module, nothing returned, no loss."""
    if function is None or program.names(file).class_of(function) is None or function.name == "__init__":
        return False
    if function.name in _FORWARD or function.decorator_list:
        return False
    nodes = list(walk(function))
    calls = [node.func.attr for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    returned = any(isinstance(node, ast.Return) and node.value is not None for node in nodes)
    makes = any(program.names(file).is_call(node, *MAKERS) for node in nodes)
    called = [dotted_name(node.func) or "" for node in nodes if isinstance(node, ast.Call)]
    runs = any(name.startswith("self.") and name.count(".") == 1 for name in called)
    return not returned and not makes and not runs and "backward" not in calls


def _row(file: SourceFile, statement: ast.stmt, program: Program) -> list[ast.stmt]:
    """The statement, and the like ones right behind it; also what takes the written value over: `slow.copy_(fast)`."""
    block = block_of(statement, file)
    row, name, root = [statement], dotted_name(_target(statement)), root_of(_target(statement))
    for one in block[block.index(statement) + 1 :]:
        is_same = name is not None and dotted_name(_target(one)) == name  # what raised is a leaf by any name
        takes = root is not None and any(isinstance(node, ast.Name) and node.id == root for node in walk(one))
        alike = _is_write(one) and (is_same or takes or _leaf(one, file, program) is not None or reads_gradient(one))
        if not alike or one.lineno != (row[-1].end_lineno or 0) + 1:
            break
        row.append(one)
    return row
