"""What a value was computed from: the statements of one function that lie between a tensor and what it is made of.

Names are taken by their root, `x` of `x.mean()` and `self.h` of `self.h.shape`. Only what a gradient can pass through counts
as read: not what stands under `detach()`, `item()`, a comparison or `no_grad`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import children

CUTS = frozenset(
    {"detach", "item", "tolist", "numpy", "argmax", "argmin", "size", "dim", "numel", "parameters", "backward", "step"}
    | {
        "state_dict",
        "zero_grad",
        "new_zeros",
        "new_ones",
        "new_full",
        "sample",
        "multinomial",
        "eq",
        "ne",
        "gt",
        "lt",
        "ge",
        "le",
    }
)
_NO_VALUE = frozenset({"len", "int", "float", "bool", "str", "print", "isinstance", "range", "id", "type"})
_ATTRIBUTES = frozenset({"shape", "dtype", "device", "data", "ndim", "requires_grad", "grad", "is_leaf"})
GROWS = frozenset({"append", "extend", "insert", "appendleft", "add", "update"})
Scope = Function | ast.Module
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def root_of(node: ast.AST | None) -> str | None:
    """The name under an expression: `x` of `x.mean()[0]`, `self.h` of `self.h.shape`; None where there is none."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred, ast.Call)):
        name = dotted_name(node)
        if name is not None:
            return _root(name)
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _root(name: str) -> str:
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] == "self" else parts[0]


def reads(node: ast.AST | None, *, graph: bool = True) -> set[str]:
    """The roots that an expression or statement reads; with `graph` only those through which a gradient can pass."""
    found: set[str] = set()
    queue: list[ast.AST] = [node] if node is not None else []
    while queue:
        one = queue.pop()
        if graph and _is_cut(one):
            continue
        if isinstance(one, (ast.Name, ast.Attribute)):
            name = dotted_name(one)
            if name is not None:
                if not isinstance(one.ctx, ast.Store):
                    found.add(_root(name))
                continue
        queue.extend(children(one))
    return found


def _is_cut(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return True
    if isinstance(node, ast.Attribute):
        return node.attr in _ATTRIBUTES
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        is_own = node.func.attr == "step" and len(node.args) > 1  # `self.step(x, y, state)`, no optimizer's
        return node.func.attr in CUTS and not is_own
    return isinstance(node.func, ast.Name) and node.func.id in _NO_VALUE


def binds(statement: ast.stmt) -> set[str]:
    """The roots that a statement gives a new value."""
    found: set[str] = set()
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = list(statement.targets)
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)):
        targets = [statement.target]
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        targets = [item.optional_vars for item in statement.items if item.optional_vars is not None]
    for target in targets:
        found |= {name for one in _leaves(target) if (name := dotted_name(one)) and _root(name) == name}
    return found


def _leaves(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for one in target.elts:
            yield from _leaves(one)
    elif isinstance(target, ast.Starred):
        yield from _leaves(target.value)
    else:
        yield target


def changes(statement: ast.stmt) -> set[str]:
    """The roots whose value a statement adds to: `x += y`, `x[i] = y`, `x.append(y)`."""
    if isinstance(statement, ast.AugAssign):
        name = root_of(statement.target)
        return {name} if name else set()
    if isinstance(statement, ast.Assign):
        return {name for one in statement.targets for leaf in _leaves(one)
                if isinstance(leaf, ast.Subscript) and (name := root_of(leaf))}  # fmt: skip
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        method = call.func.attr
        if method in GROWS or (method.endswith("_") and not method.startswith("_")):
            name = root_of(call.func.value)
            return {name} if name else set()
    return set()


def value_of(statement: ast.stmt, name: str = "") -> ast.expr | None:
    """The expression whose value a statement gives or adds to a name; its part of `a, b = x, y`."""
    part = _part(statement, name) if isinstance(statement, ast.Assign) and name else None
    if part is not None:
        return part
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return statement.value
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return statement.iter
    return statement.value if isinstance(statement, ast.Expr) else None


def _part(statement: ast.Assign, name: str) -> ast.expr | None:
    target, value = statement.targets[0], statement.value
    if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(value, (ast.Tuple, ast.List)):
        return None
    if len(target.elts) != len(value.elts):
        return None
    return next((one for place, one in zip(target.elts, value.elts, strict=True) if dotted_name(place) == name), None)


@lru_cache(maxsize=256)
def statements_of(scope: Scope) -> tuple[ast.stmt, ...]:
    """The statements of a function or file in the order of the text, those of nested functions and classes left out."""
    found: list[ast.stmt] = []
    queue: list[ast.AST] = list(scope.body)
    while queue:
        node = queue.pop()
        if isinstance(node, ast.stmt):
            found.append(node)
        if not isinstance(node, _SCOPES):
            queue.extend(child for child in children(node) if isinstance(child, (ast.stmt, ast.excepthandler)))
    return tuple(sorted(found, key=lambda one: (one.lineno, one.col_offset)))


def scope_of(node: ast.AST, file: SourceFile, program: Program) -> Scope | None:
    """The function around a node, or the file."""
    return program.names(file).function_of(node) or file.tree


def before(one: ast.stmt, other: ast.stmt) -> bool:
    """Whether a statement stands wholly before another in the text, and in no other branch of the same `if`."""
    return (one.end_lineno or 0, one.end_col_offset or 0) <= (other.lineno, other.col_offset)


def definitions(name: str, at: ast.stmt, scope: Scope) -> list[ast.stmt]:
    """The statements that made the value which `name` has at `at`: the last binding before it and what was added since."""
    made: list[ast.stmt] = []
    for one in statements_of(scope):
        is_around = isinstance(one, (ast.For, ast.AsyncFor, ast.With)) and _covers(one, at)
        if not is_around and not before(one, at):
            continue
        if name in changes(one):
            made.append(one)
        elif name in binds(one):
            made = [one]
    return made


def _covers(outer: ast.stmt, inner: ast.stmt) -> bool:
    return (outer.lineno, outer.col_offset) < (inner.lineno, inner.col_offset) <= (outer.end_lineno or 0, 10**6)


def sources(node: ast.AST, at: ast.stmt, file: SourceFile, program: Program) -> list[tuple[ast.stmt, ast.expr]]:
    """What gradients of `node` flow through before `at` in its function: statements, and the part of each that counts."""
    scope = scope_of(at, file, program)
    found: dict[tuple[ast.stmt, ast.expr], None] = {}
    queue: list[tuple[str, ast.stmt]] = [(name, at) for name in reads(node)]
    seen: set[tuple[str, ast.stmt]] = set()
    while queue and scope is not None:
        key = queue.pop()
        if key in seen:
            continue
        seen.add(key)
        for made in definitions(*key, scope):
            value = value_of(made, key[0])
            if value is None or is_without_grad(made, file, program):
                continue
            found[made, value] = None
            queue.extend((name, made) for name in reads(value))
    return sorted(found, key=lambda one: (one[0].lineno, one[0].col_offset))


def lineage(node: ast.AST, at: ast.stmt, file: SourceFile, program: Program) -> list[ast.stmt]:
    """The statements before `at` in its function through which gradients of `node` flow, in the order of the text."""
    return list(dict.fromkeys(one for one, _ in sources(node, at, file, program)))


def block_of(statement: ast.stmt, file: SourceFile) -> Sequence[ast.stmt]:
    """The list of statements that holds a statement."""
    above = file.parents.get(statement)
    for name in ("body", "orelse", "finalbody", "handlers"):
        block = getattr(above, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return ()


def loop_of(statement: ast.AST, file: SourceFile) -> ast.For | ast.While | None:
    """The innermost loop around a statement, within its function."""
    above = file.parents.get(statement)
    while above is not None and not isinstance(above, _SCOPES):
        if isinstance(above, (ast.For, ast.While)):
            return above
        above = file.parents.get(above)
    return None


def loops_of(statement: ast.AST, file: SourceFile) -> Iterator[ast.For | ast.While]:
    """The loops around a statement, innermost first."""
    loop = loop_of(statement, file)
    while loop is not None:
        yield loop
        loop = loop_of(loop, file)
