"""A custom Function whose backward goes through NumPy gives its gradient back where the tensor is: `return g.to(grad.device)`.

The device is that of the saved input, that of the incoming gradient where `forward` hands its result back to the input's device,
else one that `forward` keeps.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import reaching
from explainer.source.value.lineage import statements_of

_FUNCTIONS = ("torch.autograd.Function", "torch.autograd.function.Function")
_FROM_HOST = ("torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.asarray")
_CPU = "cpu"
_LIKE = frozenset({"to", "type_as", "new_tensor", "new_zeros", "new_empty", "new_full"})
_DEPTH = 4


@dataclass(frozen=True)
class _Function:
    """A custom Function: its methods, and the names of their arguments."""

    file: SourceFile
    names: Names
    forward: ast.FunctionDef
    backward: ast.FunctionDef
    has_setup: bool

    @property
    def inputs(self) -> list[str]:
        """The arguments of `forward` but for `ctx`."""
        given = [one.arg for one in self.forward.args.args]
        return given if self.has_setup else given[1:]

    @property
    def contexts(self) -> tuple[str, str]:
        """What the two methods call the context."""
        return self.forward.args.args[0].arg, self.backward.args.args[0].arg


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the Function whose gradient the message says to be on the CPU."""
    node, index = str(context.fields.get("node") or ""), str(context.fields.get("index") or "")
    if context.fields.get("got_device") != _CPU or not index.isdigit():
        return
    for file in context.program.parsed():
        names = context.program.names(file)
        for owner in names.classes.values():
            found = _methods(owner, file, names) if node == f"{owner.name}Backward" else None
            if found is not None:
                yield from _moved(found, int(index))


def _methods(owner: ast.ClassDef, file: SourceFile, names: Names) -> _Function | None:
    found = {one.name: one for one in owner.body if isinstance(one, ast.FunctionDef)}
    forward, backward = found.get("forward"), found.get("backward")
    is_function = any(names.qualified(base) in _FUNCTIONS for base in owner.bases)
    if not is_function or forward is None or backward is None or len(backward.args.args) < 2:
        return None
    return _Function(file, names, forward, backward, "setup_context" in found)


def _moved(function: _Function, index: int) -> Iterator[Proposal]:
    file = function.file
    returns = [one for one in statements_of(function.backward) if isinstance(one, ast.Return) and one.value is not None]
    for one in returns:
        parts = _parts(one.value, function) if one.value is not None else []
        given = [at for at, part in enumerate(parts) if not _is_none(part)]
        # Autograd counts the tensors among the arguments, those without a gradient too: which one it means is not read off.
        left = [at for at in given if _is_of_host(parts[at], function)]
        is_known = bool(left)
        if not left and index < len(given):
            left = [given[index]]
        if not left:
            continue
        kept: list[Edit] = []
        edits = []
        for at in left:
            device = _device(function, function.inputs[at], kept)
            edits.append(put_method(file, parts[at], f".to({device})"))
        yield Proposal(
            edits=(*kept, *edits),
            culprit=culprit_of(
                file, parts[left[0]], "gives back a gradient on the CPU, also where its tensor is on the GPU"
            ),
            belief=2.5 if is_known else 1.5,
            title="Give the gradient back on the device of its tensor: `.to(...)`",
            because="autograd casts a gradient to its tensor's dtype, but does not move it",
        )


def _parts(value: ast.expr, function: _Function) -> list[ast.expr]:
    """The gradients of a `return`, one for each argument; [] where it is not seen how many there are."""
    if isinstance(value, ast.Tuple):
        parts = list(value.elts)
    elif isinstance(value, ast.Name) and isinstance(bound := _bound(value, function), (ast.Tuple, ast.List)):
        parts = list(bound.elts)
    else:
        parts = [value]
    return parts if len(parts) == len(function.inputs) else []


def _bound(node: ast.Name, function: _Function) -> ast.expr | None:
    found = reaching(node.id, node, function.file)
    return found[0].node if len(found) == 1 and found[0].pick is None and not found[0].is_element else None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_of_host(node: ast.expr, function: _Function, depth: int = 0) -> bool:
    """Whether a value is made of an array, or was brought to the CPU, and goes to no other device again."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LIKE:
        return False
    for one in walk(node):
        if isinstance(one, ast.Call):
            is_host = isinstance(one.func, ast.Attribute) and one.func.attr == "cpu"
            is_made = function.names.qualified(one.func) in _FROM_HOST
            if is_host or (is_made and not any(each.arg == "device" for each in one.keywords)):
                return True
        elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and depth < _DEPTH:
            bound = _bound(one, function)
            if bound is not None and _is_of_host(bound, function, depth + 1):
                return True
    return False


def _device(function: _Function, name: str, kept: list[Edit]) -> str:
    """What names the device of an argument of `forward` in `backward`; where nothing does, `forward` keeps it in `kept`."""
    gradient = function.backward.args.args[1].arg
    saved = _saved_as(function, name)
    if saved is not None:
        return f"{saved}.device"
    if function.has_setup or _goes_back(function):
        return f"{gradient}.device"
    ctx, other = function.contexts
    first = next((one for one in function.forward.body if not _is_docstring(one)), function.forward.body[0])
    kept.append(insert_before(function.file, first, f"{ctx}.{name}_device = {name}.device"))
    return f"{other}.{name}_device"


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _saved_as(function: _Function, name: str) -> str | None:
    """What `backward` calls an argument that `forward` has saved as it is."""
    ctx, other = function.contexts
    saves = [
        one for one in walk(function.forward) if isinstance(one, ast.Call) and dotted_name(one.func) == f"{ctx}.save_for_backward"
    ]  # fmt: skip
    names = [dotted_name(one) for one in saves[0].args] if len(saves) == 1 else []
    is_rebound = any(
        isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store)
        for one in walk(function.forward)
    )
    if name not in names or is_rebound:
        return None
    for one in statements_of(function.backward):
        if isinstance(one, ast.Assign) and dotted_name(one.value) == f"{other}.saved_tensors":
            target = one.targets[0]
            parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
            found = dotted_name(parts[names.index(name)]) if len(parts) == len(names) else None
            return found if found is not None and not _is_rebound_in_backward(found, one, function) else None
    return None


def _is_rebound_in_backward(name: str, unpacked: ast.stmt, function: _Function) -> bool:
    """Whether a saved tensor's name comes to stand for something else: `x = x.cpu().numpy()`."""
    return any(
        isinstance(one, ast.Assign) and one is not unpacked and name in {dotted_name(each) for each in one.targets}
        for one in statements_of(function.backward)
    )


def _goes_back(function: _Function) -> bool:
    """Whether all that `forward` returns is sent to the device of an argument: the incoming gradient is there too."""
    returns = [one.value for one in statements_of(function.forward) if isinstance(one, ast.Return)]
    return bool(returns) and all(one is not None and _is_like_input(one, function) for one in returns)


def _is_like_input(value: ast.expr, function: _Function, depth: int = 0) -> bool:
    if isinstance(value, ast.Name) and depth < _DEPTH and value.id not in function.inputs:
        bound = _bound(value, function)
        return bound is not None and _is_like_input(bound, function, depth + 1)
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Attribute) and value.func.attr in ("to", "type_as"):
        given = [*value.args, *(one.value for one in value.keywords)]
        return any(_names_input(one, function) for one in given)
    if any(one.arg == "device" and _names_input(one.value, function) for one in value.keywords):
        return True
    # What is done to it afterwards leaves it where it is: `torch.from_numpy(y).to(x).view(-1)`.
    is_method = isinstance(value.func, ast.Attribute) and value.func.attr not in ("cpu", "numpy")
    return is_method and isinstance(value.func, ast.Attribute) and _is_like_input(value.func.value, function, depth + 1)


def _names_input(node: ast.expr, function: _Function) -> bool:
    """Whether an expression is an argument of `forward`, or its device."""
    name = dotted_name(node) or ""
    return name in function.inputs or (name.endswith(".device") and name.removesuffix(".device") in function.inputs)
