"""A parameter that the program moves by a rule of its own, while an optimizer that takes all of the module's moves it as well.

A multiplier that climbs by the violation of its constraint, a threshold that follows a rate, a bias that balances experts: with
`no_grad` around its update the optimizer descends what the rule ascends.
"""

from __future__ import annotations

import ast

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.optimized import optimizer_calls
from explainer.source.program import Program
from explainer.source.tree import walk

MAKERS = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
_SHIFTS = frozenset({"add_", "sub_"})
_BUILDERS = ("__init__", "forward", "reset_parameters")


def hand_moved(statement: ast.stmt, file: SourceFile, program: Program) -> ast.Assign | None:
    """The statement that makes the parameter which a statement shifts, where an optimizer owns it too; None for any other write.

    What scales, clamps or overwrites a parameter is a projection or a start, and what reads its gradient an optimizer.
    """
    names = program.names(file)
    owner, function = names.class_of(statement), names.function_of(statement)
    name = dotted_name(_shifted(statement)) or ""
    attribute = name.removeprefix("self.")
    is_rule = owner is not None and function is not None and function.name not in _BUILDERS
    if not is_rule or owner is None or attribute == name or "." in attribute or reads_gradient(statement):
        return None
    made = [one for one in walk(owner) if isinstance(one, ast.Assign) and name in map(dotted_name, one.targets)]
    value = made[0].value if len(made) == 1 and len(made[0].targets) == 1 else None
    if not isinstance(value, ast.Call) or not names.is_call(value, *MAKERS) or len(value.args) != 1 or value.keywords:
        return None
    return made[0] if any(_takes_all(call, where, attribute) for where, call in optimizer_calls(program)) else None


def _shifted(statement: ast.stmt) -> ast.expr | None:
    """What a statement adds something to in place."""
    if isinstance(statement, ast.AugAssign):
        return statement.target if isinstance(statement.op, (ast.Add, ast.Sub)) else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    is_shift = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _SHIFTS
    return call.func.value if is_shift else None  # type: ignore[union-attr]


def is_inner_step(statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a loop moves parameters by gradients that `autograd.grad` gave, where an optimizer moves them as well.

    `for p, g in zip(parameters, gradients): p.sub_(lr * g)`. What is moved back afterwards, as for sharpness, is no step.
    """
    loop, name = file.enclosing(statement, ast.For), dotted_name(_shifted(statement))
    if not isinstance(loop, ast.For) or name is None or not any(True for _ in optimizer_calls(program)):
        return False
    walked = {one.id for one in walk(loop.target) if isinstance(one, ast.Name)}
    read = {one.id for one in walk(statement) if isinstance(one, ast.Name)} - {name}
    is_zipped = isinstance(loop.iter, ast.Call) and dotted_name(loop.iter.func) == "zip"
    if name not in walked or not read & walked or not is_zipped:
        return False
    nodes = [(where, node) for where in program.parsed() for node in where.walk() if isinstance(node, ast.Call)]
    if not any(program.names(where).is_call(node, "torch.autograd.grad") for where, node in nodes):
        return False
    back = ("add_" if _is_down(statement) else "sub_", "copy_", "load_state_dict")
    # `slow.mul_(m).add_(fast)` is an average, and puts nothing back.
    return not any(
        isinstance(node.func, ast.Attribute) and node.func.attr in back and not isinstance(node.func.value, ast.Call)
        for _, node in nodes
    )


def _is_down(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, ast.Sub)
    return any(isinstance(one, ast.Attribute) and one.attr == "sub_" for one in walk(statement))


def reads_gradient(statement: ast.stmt) -> bool:
    """Whether a statement reads a gradient, as what an optimizer does by hand."""
    return any(isinstance(one, ast.Attribute) and one.attr == "grad" for one in walk(statement))


def _takes_all(call: ast.Call, file: SourceFile, attribute: str) -> bool:
    """Whether an optimizer is given all parameters of a whole model, and nothing is said of the one by its name."""
    whole = [
        one
        for one in walk(call)
        if isinstance(one, ast.Attribute)
        and one.attr in ("parameters", "named_parameters")
        and isinstance(one.value, ast.Name)
    ]
    return bool(whole) and attribute not in file.segment(call)
