"""Makes a tensor that should require grad a floating one: `torch.tensor([1.0, 2.0], requires_grad=True)`.

An integer parameter that is used as an index is registered as a buffer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.fix.text.rewrite import add_argument, put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.network.anew import PARAMETER
from explainer.source.tree import walk

_LITERALS = ("torch.tensor", "torch.as_tensor")
_INTEGER = ("torch.arange", "torch.randint", "torch.full", "torch.randperm")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the tensor of the failing statement that asks for a gradient."""
    if not context.has_failed:
        return
    for file, statement in failing_statements(context)[:1]:
        names = context.program.names(file)
        for node in walk(statement):
            if isinstance(node, ast.Call):
                yield from _call(node, statement, file, names)
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
            target = statement.targets[0]
            if target.attr == "requires_grad":
                name = file.segment(target.value)
                yield Proposal(
                    edits=(insert_before(file, statement, f"{name} = {name}.float()"),),
                    culprit=culprit_of(file, statement, f"asks for the gradient of integers, `{name}`"),
                    belief=1.0,
                )


def _call(node: ast.Call, statement: ast.stmt, file: SourceFile, names: Names) -> Iterator[Proposal]:
    why = "asks for the gradient of integers"
    if names.is_call(node, *PARAMETER) and node.args and not _is_off(node):
        buffer = _buffer(node, statement, file)
        edits = (buffer,) if buffer is not None else _floating(node.args[0], file, names)
        if edits:
            yield Proposal(edits=edits, culprit=culprit_of(file, node, "makes integers a parameter"), belief=2.0)
    elif any(one.arg == "requires_grad" for one in node.keywords):
        edits = _floating(node, file, names)
        if edits:
            yield Proposal(edits=edits, culprit=culprit_of(file, node, why), belief=2.0)
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
        owner = node.func.value
        edits = _floating(owner, file, names)
        if not edits and not (isinstance(owner, ast.Call) and (names.qualified(owner.func) or "").startswith("torch.")):
            edits = (put_method(file, owner, ".float()"),)
        if edits:
            yield Proposal(edits=edits, culprit=culprit_of(file, node, why), belief=1.5)


def _is_off(node: ast.Call) -> bool:
    return any(one.arg == "requires_grad" for one in node.keywords)


def _floating(node: ast.expr, file: SourceFile, names: Names) -> tuple[Edit, ...]:
    """The edits that make a constructor give floats; none where it does, or where it is not known."""
    if not isinstance(node, ast.Call):
        return ()
    dtype = next((one for one in node.keywords if one.arg == "dtype"), None)
    if dtype is not None:
        is_integer = (names.qualified(dtype.value) or "").rpartition(".")[2] in (
            "long",
            "int",
            "int64",
            "int32",
            "bool",
        )
        return (edit_of(file, dtype.value, f"{_torch(names)}.float32"),) if is_integer else ()
    if names.is_call(node, *_LITERALS) and node.args:
        if isinstance(node.args[0], (ast.Name, ast.Attribute, ast.Subscript)):
            return (add_argument(file, node, f"dtype={_torch(names)}.float32"),)  # an integer, by the message
        numbers = [
            one
            for one in walk(node.args[0])
            if isinstance(one, ast.Constant)
            and type(one.value) is int
            and isinstance(file.parents.get(one), (ast.List, ast.Tuple, ast.Call, ast.UnaryOp))
        ]
        return tuple(Edit(file=file.path, start=file.span(one)[1], end=file.span(one)[1], new=".0") for one in numbers)
    if names.is_call(node, *_INTEGER):
        return (add_argument(file, node, f"dtype={_torch(names)}.float32"),)
    return ()


def _torch(names: Names) -> str:
    return next((alias for alias, target in names.imports.items() if target == "torch"), "torch")


def _buffer(node: ast.Call, statement: ast.stmt, file: SourceFile) -> Edit | None:
    """`self.register_buffer(...)` for a parameter that is looked up with or sliced by."""
    if not isinstance(statement, ast.Assign) or statement.value is not node or len(node.args) != 1:
        return None
    name = dotted_name(statement.targets[0]) or ""
    owner, _, attribute = name.rpartition(".")
    if owner != "self" or not _is_index(name, file):
        return None
    return edit_of(file, statement, f'self.register_buffer("{attribute}", {file.segment(node.args[0])})')


def _is_index(name: str, file: SourceFile) -> bool:
    """Whether an attribute is an argument of a module alone, or stands in a subscript, as positions do."""
    for node in file.walk():
        if isinstance(node, ast.Subscript) and any(dotted_name(one) == name for one in walk(node.slice)):
            return True
        is_module = isinstance(node, ast.Call) and (dotted_name(node.func) or "").startswith("self.")
        if is_module and len(node.args) == 1:  # type: ignore[attr-defined]
            given = node.args[0]  # type: ignore[attr-defined]
            if dotted_name(given.value if isinstance(given, ast.Subscript) else given) == name:
                return True
    return False
