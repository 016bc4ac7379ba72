"""What names mean in one file: imports and aliases, classes, functions, and what variables were assigned from."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property

from explainer.source.file import SourceFile

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Names:
    """The names of one file. `module` is its dotted name within the project, for relative imports."""

    def __init__(self, file: SourceFile, module: str = "") -> None:
        self.file = file
        self.module = module
        self._known_around: dict[ast.AST, tuple[Function | None, ast.ClassDef | None]] = {}
        self._known_names: dict[ast.AST, str | None] = {}

    @cached_property
    def imports(self) -> dict[str, str]:
        """What each imported name stands for: `{"F": "torch.nn.functional", "nn": "torch.nn"}`."""
        found: dict[str, str] = {}
        for node in self.file.walk():
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    found[name] = alias.name if alias.asname else name
            elif isinstance(node, ast.ImportFrom):
                base = self._from(node)
                for alias in node.names:
                    found[alias.asname or alias.name] = f"{base}.{alias.name}" if base else alias.name
        return found

    def _from(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = self.module.split(".")[: -node.level]
        return ".".join([*package, *([node.module] if node.module else [])])

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """The file's classes by name."""
        return {node.name: node for node in self.file.walk() if isinstance(node, ast.ClassDef)}

    @cached_property
    def functions(self) -> list[Function]:
        """Every function and method, in the order of the file."""
        found = [node for node in self.file.walk() if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        return sorted(found, key=lambda node: node.lineno)

    def qualified(self, node: ast.AST | None) -> str | None:
        """The dotted name that an expression stands for, resolved through imports and aliases; None where it is none.

        Example: with `import torch.nn.functional as F`, `F.relu` is "torch.nn.functional.relu"; `nn.init.zeros_` with
        `from torch import nn` is "torch.nn.init.zeros_". Names that the file does not import stay as they are written.
        """
        if node is None:
            return None
        if node not in self._known_names:
            self._known_names[node] = self._qualified(node)
        return self._known_names[node]

    def _qualified(self, node: ast.AST) -> str | None:
        dotted = dotted_name(node)
        if dotted is None:
            return None
        first, _, rest = dotted.partition(".")
        base = self.imports.get(first) or self._alias(first)
        return f"{base}.{rest}" if base and rest else base or dotted

    def _alias(self, name: str) -> str | None:
        """What a module-level `name = some.module.attribute` gives another name to."""
        value = self._aliases.get(name)
        if value is None:
            return None
        first, _, rest = value.partition(".")
        base = self.imports.get(first)
        return f"{base}.{rest}" if base and rest else base

    @cached_property
    def _aliases(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for node in self.file.tree.body if self.file.tree else ():
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                dotted = dotted_name(node.value)
                if dotted:
                    found[node.targets[0].id] = dotted
        return found

    def is_call(self, node: ast.AST | None, *names: str) -> bool:
        """Whether `node` calls one of the qualified `names`; a name that begins with "." matches any owner's method."""
        if not isinstance(node, ast.Call):
            return False
        called = self.qualified(node.func) or ""
        method = f".{node.func.attr}" if isinstance(node.func, ast.Attribute) else ""
        return called in names or (bool(method) and method in names) or self._is_choice(node.func, names)

    def _is_choice(self, func: ast.expr, names: Sequence[str]) -> bool:
        """`CELLS[kind](...)` where every value of the dictionary `CELLS` is one of the names."""
        if not isinstance(func, ast.Subscript) or not isinstance(func.value, ast.Name):
            return False
        made = self._bindings.get(func.value.id, [])
        choices = made[0].value if len(made) == 1 else None
        return (
            isinstance(choices, ast.Dict)
            and bool(choices.values)
            and all(self.qualified(one) in names for one in choices.values)
        )

    def function_of(self, node: ast.AST) -> Function | None:
        """The function around a node."""
        return self._around(node)[0]

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The class around a node."""
        return self._around(node)[1]

    def _around(self, node: ast.AST) -> tuple[Function | None, ast.ClassDef | None]:
        """The nearest function and class around a node, looked up once a node: readers ask for the same ones again."""
        path: list[ast.AST] = []
        above: ast.AST | None = node
        while above is not None and above not in self._known_around:
            path.append(above)
            above = self.file.parents.get(above)
        function, owner = self._known_around[above] if above is not None else (None, None)
        for one in reversed(path):
            if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
                function = above
            elif isinstance(above, ast.ClassDef):
                owner = above
            self._known_around[one] = function, owner
            above = one
        return self._known_around[node]

    def assignments(self, name: str, within: ast.AST) -> list[ast.Assign | ast.AnnAssign | ast.AugAssign]:
        """The statements under `within` that bind or augment the dotted `name`, in the order of the file."""
        found = self._bindings.get(name, [])
        if isinstance(within, ast.Module):
            return list(found)
        first = bisect_left(found, within.lineno, key=_line)  # type: ignore[attr-defined]
        return found[first : bisect_right(found, within.end_lineno, key=_line)]  # type: ignore[attr-defined]

    @cached_property
    def _bindings(self) -> dict[str, list[ast.Assign | ast.AnnAssign | ast.AugAssign]]:
        """The assignments of the file by the names that they bind, each list in the order of the file."""
        found: dict[str, list[ast.Assign | ast.AnnAssign | ast.AugAssign]] = {}
        for node in self.file.nodes:
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                for name in dict.fromkeys(bound_names(node)):
                    found.setdefault(name, []).append(node)
        for nodes in found.values():
            nodes.sort(key=lambda node: (node.lineno, node.col_offset))
        return found

    def attribute_value(self, owner: ast.ClassDef, attribute: str) -> ast.expr | None:
        """What `self.<attribute>` is assigned in a class, in `__init__` first; None where it is not, or more than once.

        The whole value where it is unpacked into several names and its parts are not written.
        """
        name = f"self.{attribute}"
        found = [
            one for one in self.assignments(name, owner) if isinstance(one, (ast.Assign, ast.AnnAssign)) and one.value
        ]
        return _given(found[0], name) if len(found) == 1 else None


def _line(node: ast.stmt) -> int:
    return node.lineno


def _given(statement: ast.Assign | ast.AnnAssign, name: str) -> ast.expr | None:
    """What an assignment gives to one of its targets: `b` to `self.y` in `self.x, self.y = a, b`."""
    value = statement.value
    for target in statement.targets if isinstance(statement, ast.Assign) else ():
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
            at = next((place for place, one in enumerate(target.elts) if dotted_name(one) == name), None)
            is_same = len(target.elts) == len(value.elts)
            if (
                at is not None
                and is_same
                and not any(isinstance(one, ast.Starred) for one in (*target.elts, *value.elts))
            ):
                return value.elts[at]
    return value


def dotted_name(node: ast.AST | None) -> str | None:
    """`a.b.c` as written; None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def entry_name(node: ast.AST | None) -> str | None:
    """A dotted name with constant keys, as `nets["g"].body`, in one spelling of the quotes; None for anything else."""
    if isinstance(node, ast.Attribute):
        owner = entry_name(node.value)
        return f"{owner}.{node.attr}" if owner is not None else None
    if isinstance(node, ast.Subscript):
        owner = entry_name(node.value)
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if owner is None or not isinstance(key, (str, int)):
            return None
        return f'{owner}["{key}"]' if isinstance(key, str) else f"{owner}[{key}]"
    return node.id if isinstance(node, ast.Name) else None


def bound_names(node: ast.AST) -> Iterator[str]:
    """The dotted names that a statement binds: targets of assignments, loops and `with`, also in tuples."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor, ast.NamedExpr)):
        targets = [node.target]
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        targets = [item.optional_vars for item in node.items if item.optional_vars is not None]
    for target in targets:
        yield from _targets(target)


def _targets(target: ast.expr) -> Iterator[str]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for one in target.elts:
            yield from _targets(one)
    elif isinstance(target, ast.Starred):
        yield from _targets(target.value)
    else:
        name = dotted_name(target)
        if name:
            yield name
