"""Functions that write in place and are handed on: `reduce(operator.add, xs)` for `reduce(operator.iadd, xs)`.

So too `F.relu` for `F.relu_` in a table, `torch.Tensor.add` for `torch.Tensor.add_`, `methodcaller("relu")` for `methodcaller("relu_")`.
A call of one is such a place as well where its result is used.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.patch import Edit
from explainer.model.trace import WRITE
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.name import Names
from explainer.source.tree import walk

_OPERATORS = frozenset(
    f"operator.i{one}" for one in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor")
)  # fmt: skip
_METHODCALLER = "operator.methodcaller"
_OUT_OF_PLACE = {"operator.iand": "and_", "operator.ior": "or_"}
_OWNERS = ("torch", "torch.nn.functional", "torch.Tensor")
_WHY = "is a function that writes into its first argument, also where a backward needs that"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each such function, surer on a line that a trace saw write."""
    if not context.has_failed:
        return
    traced = {id(one) for _, _, one in traced_statements(WRITE, context)}
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in _named(file, names):
            edits = tuple(_edits(node, file, names))
            if edits and not is_without_grad(node, file, context.program):
                belief = 2.0 if id(file.statement(node)) in traced else 0.8
                yield Proposal(edits=edits, culprit=culprit_of(file, node, _WHY), belief=belief)


def _named(file: SourceFile, names: Names) -> Iterator[ast.expr]:
    """The expressions of a file that may be such a function, or a call of `methodcaller`."""
    operators = {one.rpartition(".")[2] for one in _OPERATORS}
    local = {
        name for name, target in names.imports.items() if target.endswith("_") or target in (*_OPERATORS, _METHODCALLER)
    }
    found: list[ast.expr] = [
        one
        for word, each in file.attributes.items()
        if word.endswith("_") or word in operators | {"methodcaller"}
        for one in each
    ]
    found += [one for word in local for one in file.plain_names.get(word, ())]
    for one in found:
        above = file.parents.get(one)
        is_caller = names.qualified(one) == _METHODCALLER and isinstance(above, ast.Call) and above.func is one
        yield above if is_caller and isinstance(above, ast.Call) else one


def _edits(node: ast.expr, file: SourceFile, names: Names) -> Iterator[Edit]:
    above = file.parents.get(node)
    is_called = isinstance(above, ast.Call) and above.func is node
    if isinstance(above, ast.Attribute) or (isinstance(above, ast.Call) and is_called and _is_for_effect(above, file)):
        return
    called = names.qualified(node) or "" if isinstance(node, (ast.Name, ast.Attribute)) else ""
    if called in _OPERATORS:
        yield from _renamed(node, _OUT_OF_PLACE.get(called, called.rpartition(".i")[2]), file)
        return
    owner, _, last = called.rpartition(".")
    if owner in _OWNERS and last.endswith("_") and not last.startswith("_") and not is_called:
        yield from _renamed(node, last[:-1], file)
    elif isinstance(node, ast.Call) and names.is_call(node, _METHODCALLER) and node.args:
        word = node.args[0]
        if isinstance(word, ast.Constant) and isinstance(word.value, str) and word.value.endswith("_"):
            start, end = file.span(word)
            quote = file.text[start]
            yield Edit(file=file.path, start=start, end=end, new=f"{quote}{word.value[:-1]}{quote}")


def _is_for_effect(call: ast.Call, file: SourceFile) -> bool:
    """Whether nothing takes what a call gives."""
    return isinstance(file.parents.get(call), ast.Expr)


def _renamed(node: ast.expr, new: str, file: SourceFile) -> Iterator[Edit]:
    """`operator.iadd` with another last part; of a name that is imported, its import too, where that binds no other name."""
    if isinstance(node, ast.Attribute):
        end = file.span(node)[1]
        yield Edit(file=file.path, start=end - len(node.attr), end=end, new=new)
        return
    assert isinstance(node, ast.Name)
    found = [
        (one, alias)
        for one in file.walk()
        if isinstance(one, ast.ImportFrom)
        for alias in one.names
        if (alias.asname or alias.name) == node.id
    ]
    is_alone = len(found) == 1 and found[0][1].asname is None
    uses = [one for one in walk(file.tree) if isinstance(one, ast.Name) and one.id == node.id] if file.tree else []
    if is_alone and len(uses) == 1:
        yield edit_of(file, found[0][1], new)
        yield edit_of(file, node, new)
