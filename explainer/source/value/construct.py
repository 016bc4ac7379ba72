"""What the names of one file are made of: the constructor behind a name, seen through moves, casts and wrappers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.name import Names, bound_names, dotted_name, entry_name
from explainer.source.value.keyed import COMPREHENSIONS, owners_of

_MOVES = frozenset(
    {"to", "cuda", "cpu", "train", "eval", "half", "float", "double", "bfloat16", "requires_grad_", "to_empty"}
)
_WRAPPERS = ("torch.compile", "torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel", "torch.jit.script")


def constructors(file: SourceFile, names: Names) -> Iterator[tuple[tuple[ast.ClassDef | None, str], ast.Call]]:
    """What the file's names are made of, by owning class and dotted name, where there is one assignment of a call."""
    found: dict[tuple[ast.ClassDef | None, str], list[ast.expr | None]] = {}
    for node in file.walk():
        if isinstance(node, ast.Assign):
            for name, value in _assigned(node):
                owner = names.class_of(node) if name.startswith("self.") else None
                found.setdefault((owner, name), []).append(value)
    for (owner, name), values in found.items():
        made = [_unwrapped(value, names) for value in values if not _is_moved(value, name, names)]
        if len(made) == 1 and isinstance(made[0], ast.Call):
            yield (owner, name), made[0]


def _unwrapped(value: ast.expr | None, names: Names) -> ast.expr | None:
    """What was made before it was moved, cast or compiled: `Net()` of `torch.compile(Net().to(device))`."""
    while isinstance(value, ast.Call):
        if (
            isinstance(value.func, ast.Attribute)
            and value.func.attr in _MOVES
            and isinstance(value.func.value, ast.Call)
        ):
            value = value.func.value
        elif names.is_call(value, *_WRAPPERS) and value.args:
            value = value.args[0]
        else:
            break
    return value


def _is_moved(value: ast.expr | None, name: str, names: Names) -> bool:
    """Whether an assignment gives a name only itself again: `model = model.to(device)`, `net = torch.compile(net)`."""
    if not isinstance(value, ast.Call):
        return False
    if names.is_call(value, *_WRAPPERS) and value.args:
        return dotted_name(value.args[0]) == name
    return isinstance(value.func, ast.Attribute) and value.func.attr in _MOVES and dotted_name(value.func.value) == name


def _assigned(node: ast.Assign) -> Iterator[tuple[str, ast.expr | None]]:
    """Each name that a statement binds with its value; None for a part of a value that is no tuple."""
    for target in node.targets:
        if (
            isinstance(target, ast.Tuple)
            and isinstance(node.value, ast.Tuple)
            and len(target.elts) == len(node.value.elts)
        ):
            for one, value in zip(target.elts, node.value.elts, strict=True):
                name = dotted_name(one)
                if name:
                    yield name, value
        elif isinstance(target, ast.Tuple) and isinstance(node.value, (ast.GeneratorExp, ast.ListComp)):
            # q, k, v = (nn.Linear(d, d) for _ in range(3)): each is made by the same expression
            yield from ((name, node.value.elt) for one in target.elts if (name := dotted_name(one)))
        elif name := dotted_name(target):
            yield name, node.value
        else:
            yield from ((one, None) for one in bound_names(node))


def stepped_modules(file: SourceFile) -> Iterator[str]:
    """Names whose parameters a program trains or moves: `net` of `net.parameters()`, and the container that it is walked from.

    An entry, as `nets["g"].parameters()`, has its container's name too.
    """
    for node in file.walk():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            name = entry_name(owner.value if isinstance(owner, ast.Subscript) else owner)
            if name and node.func.attr in ("parameters", "named_parameters", "state_dict", "train"):
                yield name
                yield from _walked(name, node, file)


def _walked(name: str, node: ast.AST, file: SourceFile) -> Iterator[str]:
    """The containers that a name comes from in the loops and comprehensions around a node."""
    above = file.parents.get(node)
    while above is not None and "." not in name:
        loops = above.generators if isinstance(above, COMPREHENSIONS) else ()
        for one in (*loops, *((above,) if isinstance(above, ast.For) else ())):
            yield from owners_of(name, one.target, one.iter) or ()
        above = file.parents.get(above)
