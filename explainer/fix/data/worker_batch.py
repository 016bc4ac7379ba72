"""What a collate function or a data set sends to the GPU: the moves in it, which parts of a batch they concern, and the same in a loop."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from explainer.fix.text.rewrite import remove_argument
from explainer.model.patch import Edit
from explainer.source.data.loader import Worked
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import children, walk
from explainer.source.value.binding import bounds_of, walk_scope

_NO_TENSOR = frozenset({"cpu", "item", "tolist", "numpy", "size", "shape", "dim", "numel"})
_HINTS = frozenset({"non_blocking", "copy", "memory_format"})


@dataclass(frozen=True)
class Move:
    """A call that sends to the GPU, or makes there: `x.to(device)`, `x.cuda()`, `torch.tensor(x, device=device)`."""

    node: ast.Call
    device: ast.keyword | None = None  # of what makes a tensor there

    def edit(self, file: SourceFile) -> Edit | None:
        """The edit that leaves it on the CPU."""
        if self.device is not None:
            return remove_argument(file, self.node, self.device)
        assert isinstance(self.node.func, ast.Attribute)
        end = file.span(self.node.func.value)[1]
        close = file.text.index(self.node.func.attr, end)
        dot = file.text.rindex(".", end, close)
        return Edit(file=file.path, start=dot, end=file.span(self.node)[1], new="")


@dataclass(frozen=True)
class Shape:
    """What a batch is, and which parts of it are moved.

    `kind` is "dict", "sequence" or "tensor"; `parts` are the keys or the positions that are moved, None for all; `length` is that
    of a sequence where it is known; `is_asked` where only those parts are moved that are tensors.
    """

    kind: str
    parts: tuple[str | int, ...] | None = None
    length: int | None = None
    is_asked: bool = False


def moves_of(worked: Worked, program: Program) -> list[Move] | None:
    """The moves of a function, in the order of the text; None where one of them is of a form that is not known."""
    names = program.names(worked.file)
    found: list[Move] = []
    for node in walk(worked.function):
        if not isinstance(node, ast.Call):
            continue
        given = next((one for one in node.keywords if one.arg == "device"), None)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        is_torch = (names.qualified(node.func) or "").startswith("torch.")
        if given is not None and is_torch and method != "device":
            found.append(Move(node, given))
        elif not is_torch and method == "cuda" and len(node.args) <= 1:
            found.append(Move(node))
        elif not is_torch and method == "to" and _is_device(node, names):
            if len(node.args) + len([one for one in node.keywords if one.arg not in _HINTS]) != 1:
                return None  # a dtype beside it is to stay
            found.append(Move(node))
    return sorted(found, key=lambda one: (one.node.end_lineno or 0, one.node.end_col_offset or 0))


def _is_device(call: ast.Call, names: Names) -> bool:
    """Whether `to` is given a device: a name that says so, a word for one, a `torch.device`."""
    given = [*call.args[:1], *(one.value for one in call.keywords if one.arg == "device")]
    for one in given:
        if isinstance(one, ast.Constant):
            return isinstance(one.value, (str, int)) and one.value != "cpu"
        last = (dotted_name(one) or "").rpartition(".")[2].lower()
        if "device" in last or last in ("dev", "gpu", "cuda") or names.is_call(one, "torch.device"):
            return True
    return False


def shape_of(worked: Worked, moves: Sequence[Move], program: Program) -> Shape | None:
    """What a function returns, and which parts of it the moves concern; None where that is not known."""
    returned = _returned(worked)
    if returned is None:
        return None
    moved, names = {id(one.node) for one in moves}, program.names(worked.file)
    named = _moved_names(worked, moved)
    if isinstance(returned, ast.Name):
        behind = [one for one in bounds_of(worked.function) if one.name == returned.id]
        made = next((one.node for one in reversed(behind) if not one.fills and one.pick is None), None)
        fills = [one for one in behind if one.fills]
        if made is None or (isinstance(made, (ast.Dict, ast.List)) and any(one.key is None for one in fills)):
            return None
        keyed = {one.key: one.node for one in fills if one.key is not None}
        return _shape(made, keyed, moved, named, names)
    return _shape(returned, {}, moved, named, names)


def _returned(worked: Worked) -> ast.expr | None:
    """What a function returns, in one place."""
    if isinstance(worked.function, ast.Lambda):
        return worked.function.body
    found = [one for one in walk_scope(worked.function) if isinstance(one, (ast.Return, ast.Yield))]
    return found[0].value if len(found) == 1 else None


def _moved_names(worked: Worked, moved: set[int]) -> set[str]:
    """The names of what is on the GPU: moved, or computed of what is."""
    names: set[str] = set()
    if isinstance(worked.function, ast.Lambda):
        return names
    for _ in range(2):  # a loop computes with what a later line moves
        for bound in bounds_of(worked.function):
            if _is_moved(bound.node, moved, names) and not bound.fills:
                names.add(bound.name)
    return names


def _is_moved(node: ast.AST, moved: set[int], names: set[str]) -> bool:
    """Whether an expression is on the GPU by what it is made of."""
    if isinstance(node, ast.Attribute) and node.attr in _NO_TENSOR:
        return False
    if isinstance(node, ast.Call):
        if id(node) in moved:
            return True
        if isinstance(node.func, ast.Attribute) and node.func.attr in _NO_TENSOR:
            return False
        if isinstance(node.func, ast.Name) and node.func.id in ("len", "int", "float", "str"):
            return False
    if isinstance(node, ast.Name):
        return node.id in names
    return any(_is_moved(one, moved, names) for one in children(node))


def _shape(node: ast.expr, fills: dict[str, ast.expr], moved: set[int], named: set[str], names: Names) -> Shape | None:
    """The shape of an expression, and of what is put into it under keys."""
    if isinstance(node, ast.Dict):
        keys = [getattr(one, "value", None) for one in node.keys]
        if not all(isinstance(one, str) for one in keys):
            return None
        values = {**{str(key): one for key, one in zip(keys, node.values, strict=True)}, **fills}
        if any(
            isinstance(one, (ast.Dict, ast.Tuple, ast.List)) and _is_moved(one, moved, named) for one in values.values()
        ):
            return None
        parts = tuple(key for key, one in values.items() if _is_moved(one, moved, named))
        return Shape("dict", None if len(parts) == len(values) else parts) if parts else None
    if fills:
        return None
    if isinstance(node, ast.DictComp):
        return Shape("dict", is_asked=_asks(node.value)) if _is_moved(node.value, moved, named) else None
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("tuple", "list") and len(node.args) == 1:
        node = node.args[0]
    if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
        return Shape("sequence", is_asked=_asks(node.elt)) if _is_moved(node.elt, moved, named) else None
    if isinstance(node, (ast.Tuple, ast.List)):
        flags = [_is_moved(one, moved, named) for one in node.elts]
        is_nested = any(
            flag and isinstance(one, (ast.Dict, ast.Tuple, ast.List, ast.Starred))
            for one, flag in zip(node.elts, flags, strict=True)
        )
        at = tuple(at for at, flag in enumerate(flags) if flag)
        return None if is_nested or not at else Shape("sequence", None if all(flags) else at, len(flags))
    return Shape("tensor") if _is_tensor(node, moved, names) and _is_moved(node, moved, named) else None


def _is_tensor(node: ast.expr, moved: set[int], names: Names) -> bool:
    """Whether an expression is a tensor: moved as a whole, computed, or what a function of torch or a method makes of one."""
    if not isinstance(node, ast.Call):
        return isinstance(node, (ast.Name, ast.BinOp, ast.UnaryOp, ast.Subscript))
    if id(node) in moved or (names.qualified(node.func) or "").startswith("torch."):
        return True
    return isinstance(node.func, ast.Attribute) and _is_tensor(node.func.value, moved, names)


def _asks(node: ast.expr) -> bool:
    """Whether a comprehension moves what is a tensor alone."""
    return any(isinstance(one, ast.IfExp) for one in walk(node))


def moved_by(target: ast.expr, shape: Shape, device: str) -> str | None:
    """The lines that move a batch which a loop binds to a target; None where the target does not take it apart that way."""
    if isinstance(target, ast.Name):
        return _whole(target.id, shape, device)
    if not isinstance(target, (ast.Tuple, ast.List)) or shape.kind != "sequence":
        return None
    if shape.is_asked or (shape.length is not None and shape.length != len(target.elts)):
        return None
    wanted = [one for at, one in enumerate(target.elts) if shape.parts is None or at in shape.parts]
    if not all(isinstance(one, ast.Name) for one in wanted):
        return None
    names = [one.id for one in wanted if isinstance(one, ast.Name)]
    return f"{', '.join(names)} = {', '.join(f'{name}.to({device})' for name in names)}"


def _whole(name: str, shape: Shape, device: str) -> str:
    """The lines that move a batch under one name."""
    if shape.kind == "tensor":
        return f"{name} = {name}.to({device})"
    part = "value" if shape.kind == "dict" else "part"
    moved = f"{part}.to({device})"
    moved = f"{moved} if torch.is_tensor({part}) else {part}" if shape.is_asked else moved
    if shape.kind == "dict" and shape.parts is None:
        return f"{name} = {{key: {moved} for key, value in {name}.items()}}"
    if shape.kind == "dict":
        return "\n".join(f'{name}["{key}"] = {name}["{key}"].to({device})' for key in shape.parts or ())
    if shape.parts is None:
        return f"{name} = [{moved} for part in {name}]"
    each = [f"{name}[{at}]{f'.to({device})' if at in shape.parts else ''}" for at in range(shape.length or 0)]
    return f"{name} = [{', '.join(each)}]"
