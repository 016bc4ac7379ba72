"""Local names that are bound and never read again: a statement that does no more than that does nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.tree import end_of, start_of, walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SEES_ALL = frozenset({"locals", "exec", "eval", "vars"})


def vain_bindings(before: str, after: str) -> set[tuple[str, str]]:
    """The statements that a change of a text writes, each with its function's name, and that bind a local name for nothing.

    Read is what stands behind, what stands in a loop around the statement that does not bind the name itself, and what an inner
    function reads. A line that stood there may have lost its reader. Empty for a text that does not parse.
    """
    old = {line.strip() for line in before.splitlines()}
    new = {number for number, line in enumerate(after.splitlines(), 1) if line.strip() not in old}
    try:
        tree = ast.parse(after) if new else ast.Module(body=[], type_ignores=[])
    except (SyntaxError, ValueError, RecursionError):
        return set()
    found = set()
    for function in _functions_on(new, tree):
        found |= {(function.name, ast.unparse(one)) for one in _vain(function) if _is_on(new, one)}
    return found


def _functions_on(lines: set[int], tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions that hold one of the lines; nothing is looked at that holds none."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, _FUNCTIONS):
            yield node
        for block in (getattr(node, name, ()) for name in ("body", "orelse", "finalbody", "handlers", "cases")):
            todo += [one for one in block if not isinstance(one, ast.stmt) or _is_on(lines, one)]


def _is_on(lines: set[int], node: ast.stmt) -> bool:
    return any(node.lineno <= one <= (node.end_lineno or node.lineno) for one in lines)


def _vain(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Assign]:
    nodes = list(walk(function))
    if any(isinstance(one, ast.Call) and getattr(one.func, "id", "") in _SEES_ALL for one in nodes):
        return
    outer = {name for one in nodes if isinstance(one, (ast.Global, ast.Nonlocal)) for name in one.names}
    inner = [one for one in nodes if one is not function and isinstance(one, (*_FUNCTIONS, ast.Lambda, ast.ClassDef))]
    own = set(nodes) - {node for one in inner for node in walk(one)}
    read_inside = {node.id for one in inner for node in walk(one) if isinstance(node, ast.Name)}
    loops = [one for one in own if isinstance(one, (ast.For, ast.AsyncFor, ast.While))]
    for one in own:
        target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
        name = target.id if isinstance(target, ast.Name) else ""
        if not isinstance(one, ast.Assign) or not name or name.startswith("_") or name in outer | read_inside:
            continue
        around = [loop for loop in loops if one in set(walk(loop))]
        again = {node for loop in around if name not in _bound_by(loop) for node in walk(loop)} - set(walk(one.value))
        if not any(
            isinstance(node, ast.Name) and node.id == name and node is not target
            and (start_of(node) > end_of(one) or node in again)
            and (not isinstance(node.ctx, ast.Store) or _is_added_to(node, nodes))
            for node in nodes
        ):  # fmt: skip
            yield one


def _bound_by(loop: ast.AST) -> set[str]:
    """The names that a loop binds in each round."""
    target = getattr(loop, "target", None)
    return {one.id for one in walk(target) if isinstance(one, ast.Name)} if isinstance(target, ast.AST) else set()


def _is_added_to(node: ast.Name, nodes: list[ast.AST]) -> bool:
    """Whether a name is bound by `name += ...`, which reads it."""
    return any(isinstance(one, ast.AugAssign) and one.target is node for one in nodes)
