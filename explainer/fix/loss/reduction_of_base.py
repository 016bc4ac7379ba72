"""A method that leaves out the reduction of the method whose place it takes: `self.reduce(...)`, `.mean()`.

A mixin that weighs the elements of a loss overrides `__call__` or `forward` and returns them as they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk

_HOWS = ("mean", "sum")
_DEPTH = 8

Method = tuple[SourceFile, ast.ClassDef, ast.FunctionDef, ast.expr]


def reduced_by_base(context: Context) -> Iterator[Proposal]:
    """An edit for the one method of the program that gives back unreduced what the method of its base reduces."""
    methods = list(_methods(context.program))
    found = {
        left[3]: (left, wrapped, whole)
        for whole in methods
        if (wrapped := wrapper_of(whole[3])) is not None
        for left in methods
        if left[2].name == whole[2].name
        and _is_left_out(left, whole)
        and _takes_place(left[1], whole[1], context.program)
    }
    for (file, _, function, value), wrapper, whole in found.values() if len(found) == 1 else ():
        text = file.segment(value) if wrapper.endswith("({})") else operand(file, value)
        why = f"gives back one value for each element, where `{function.name}` of `{whole[1].name}` reduces them"
        yield Proposal(
            edits=(edit_of(file, value, wrapper.format(text)),), culprit=culprit_of(file, value, why), belief=2.2,
            title=f"Reduce the loss as `{whole[1].name}.{function.name}` does",
            because=f"so does `{whole[1].name}.{function.name}`, whose place it takes",
        )  # fmt: skip


def _methods(program: Program) -> Iterator[Method]:
    """The methods that have one `return`, with what it returns."""
    for file in program.parsed():
        for owner in program.names(file).classes.values():
            for one in owner.body:
                ends = [node for node in walk(one) if isinstance(node, ast.Return)]
                if isinstance(one, ast.FunctionDef) and len(ends) == 1 and ends[0].value is not None:
                    yield file, owner, one, ends[0].value


def wrapper_of(value: ast.expr) -> str | None:
    """How a returned value is reduced, with `{}` for the elements: `self.reduce({})`, `{}.mean()`; None where it is not."""
    if not isinstance(value, ast.Call) or value.keywords:
        return None
    name = dotted_name(value.func) or ""
    if name.startswith("self.") and "reduc" in name and len(value.args) == 1:
        return f"{name}({{}})"
    how = value.func.attr if isinstance(value.func, ast.Attribute) else ""
    if how not in _HOWS:
        return None
    return f"{{}}.{how}()" if len(value.args) == (name == f"torch.{how}") else None


def _is_left_out(left: Method, whole: Method) -> bool:
    """Whether a method computes the same elements as another one, by the same methods of its own, and does not reduce them."""
    own, others = _own_calls(left[3]), _own_calls(whole[3])
    names = {name for name in others if "reduc" not in name}
    return wrapper_of(left[3]) is None and not any("reduc" in name for name in own) and bool(names & own)


def _own_calls(node: ast.AST) -> set[str]:
    return {
        name
        for one in walk(node)
        if isinstance(one, ast.Call) and (name := dotted_name(one.func) or "").startswith("self.")
    }


def _takes_place(left: ast.ClassDef, whole: ast.ClassDef, program: Program) -> bool:
    """Whether a class stands before another one among the classes that an object of the program is made of."""
    classes = {owner.name: owner for file in program.parsed() for owner in program.names(file).classes.values()}
    for one in classes.values():
        order = list(_ancestors(one, classes, 0))
        if left in order and whole in order[order.index(left) + 1 :]:
            return True
    return False


def _ancestors(owner: ast.ClassDef, classes: dict[str, ast.ClassDef], depth: int) -> Iterator[ast.ClassDef]:
    """A class and its bases in the order of the text, which is that of their methods but for diamonds."""
    yield owner
    for base in owner.bases if depth < _DEPTH else ():
        found = classes.get((dotted_name(base) or "").rpartition(".")[2])
        if found is not None and found is not owner:
            yield from _ancestors(found, classes, depth + 1)
