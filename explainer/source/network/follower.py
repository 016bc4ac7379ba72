"""Networks whose weights follow another network's: momentum encoders, target networks, averages."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bind_call
from explainer.source.value.resolve import resolver_of

_WALKS = ("parameters", "named_parameters", "state_dict")


def followers(statement: ast.stmt, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, str]]:
    """The networks whose parameters a statement writes from those of another one, as the file that runs them calls them."""
    loop = file.enclosing(statement, ast.For)
    call = loop.iter if isinstance(loop, ast.For) else None
    if not isinstance(call, ast.Call) or dotted_name(call.func) != "zip" or len(call.args) != 2:
        return
    owners = [_walked(one) for one in call.args]
    targets = loop.target.elts if isinstance(loop, ast.For) and isinstance(loop.target, ast.Tuple) else []
    for target, owner in zip(targets, owners, strict=False):
        names = {node.id for node in walk(target) if isinstance(node, ast.Name)}
        if owner is None or None in owners or not names & _written(statement):
            continue
        yield file, owner
        function = program.names(file).function_of(statement)
        for where, made in resolver_of(program).calls_of(function, file) if function is not None else ():
            root, dot, rest = owner.partition(".")  # `pair.teacher` of a function that is given `self` for `pair`
            given = bind_call(made, function, Value(made, where)).get(root) if function is not None else None
            name = dotted_name(given.node) if given is not None else None
            if name is not None:
                yield where, f"{name}{dot}{rest}"


def _walked(node: ast.expr) -> str | None:
    """`self.key` of `self.key.parameters()`, of `list(self.key.parameters())`, of `self.key.state_dict().values()`."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _WALKS:
            return dotted_name(node.func.value)
        node = node.func.value if isinstance(node.func, ast.Attribute) else node.args[0] if node.args else node.func
    return None


def _written(statement: ast.stmt) -> set[str]:
    """The names whose tensors a statement writes: `slow` of `slow.mul_(m).add_(fast)`, of `slow.data = ...`."""
    if isinstance(statement, ast.Assign):
        nodes: list[ast.AST] = [one for one in statement.targets if isinstance(one, (ast.Attribute, ast.Subscript))]
    elif isinstance(statement, ast.AugAssign):
        nodes = [statement.target]
    else:
        calls = [one for one in walk(statement) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)]
        nodes = [one.func.value for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr.endswith("_")]
    found = set()
    for node in nodes:
        while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
            node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Name):
            found.add(node.id)
    return found
