"""Where the values of a maximum stand as ids, their places do: `logits.max(1)[1]` for `logits.max(1)[0]`, `topi` for `topv`.

For what an embedding, a loss of classes, `one_hot` or `gather` refuses as floats. A pair that is unpacked gives the name of its
places, where it has one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, scope_of
from explainer.source.value.origin import KEEP
from explainer.source.value.resolve import resolver_of

_WHOLE_WANTED = re.compile(
    r"scalar types?:? Long|Expected dtype int|Expected a long tensor for index|expected target dtype to be Long"
    r"|one_hot is only applicable to index tensor|tensors used as indices must be long"
)
_PAIRS = frozenset({"max", "min", "topk", "sort", "mode", "median", "kthvalue", "cummax", "cummin"})
_DEPTH = 8


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each argument of the line that raised which comes from the values of a maximum."""
    if not _WHOLE_WANTED.search(message_of(context)):
        return
    for file, statement in list(raised_at(context))[:1]:
        given = [one for call in walk(statement) if isinstance(call, ast.Call) for one in _arguments(call)]
        given += [one.slice for one in walk(statement) if isinstance(one, ast.Subscript)]
        found = {edit: proposal for node in given for edit, proposal in _places(Value(node, file), context.program)}
        yield from found.values()


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(one.value for one in call.keywords)]


def _places(value: Value, program: Program, depth: int = 0) -> Iterator[tuple[Edit, Proposal]]:
    """The edits that take the places instead of the values behind an expression, through names and reshapes."""
    node, file = _peeled(value.node), value.file
    if depth > _DEPTH:
        return
    if isinstance(node, ast.IfExp):
        for branch in (node.body, node.orelse):
            yield from _places(replace(value, node=branch), program, depth + 1)
    elif isinstance(node, ast.Subscript) and _is_pair(node.value, file, program):
        if isinstance(node.slice, ast.Constant) and node.slice.value == 0:
            yield _told(edit_of(file, node.slice, "1"), node, file)
    elif isinstance(node, ast.Attribute) and node.attr == "values" and _is_pair(node.value, file, program):
        yield _told(edit_of(file, node, f"{file.segment(node.value)}.indices"), node, file)
    elif isinstance(node, ast.Subscript):
        yield from _places(replace(value, node=node.value), program, depth + 1)
    elif dotted_name(node):
        yield from _of_name(replace(value, node=node), program, depth)


def _of_name(value: Value, program: Program, depth: int) -> Iterator[tuple[Edit, Proposal]]:
    """Those of what a name stands for; of the first name of a pair, the second in its stead."""
    for one in _bound(value, program):
        if one.is_element:
            continue
        if one.pick is None:
            yield from _places(one, program, depth + 1)
        elif one.pick == 0 and one.file is value.file and _is_pair(one.node, one.file, program):
            places = _second(one)
            if places is not None:
                yield _told(edit_of(value.file, value.node, places), value.node, value.file)


def _bound(value: Value, program: Program) -> Iterator[Value]:
    """What a name stands for, also what a later line of a loop gives it for the next round."""
    name, scope = dotted_name(value.node), scope_of(value.node, value.file)
    own = [one for one in bounds_of(scope) if one.name == name and not one.fills]
    for one in own:
        yield replace(value, node=one.node, pick=one.pick, is_element=one.is_element, statement=one.statement)
    if not own:
        yield from resolver_of(program).behind(value)


def _told(edit: Edit, node: ast.expr, file: SourceFile) -> tuple[Edit, Proposal]:
    culprit = culprit_of(file, node, "takes the values of the best entries, where their places are meant")
    return edit, Proposal(edits=(edit,), culprit=culprit, belief=2.6)


def _peeled(node: ast.expr) -> ast.expr:
    """An expression without the methods that hand on what they are called on."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in KEEP:
        node = node.func.value
    return node


def _is_pair(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a call gives values and their places: `x.max(1)`, `torch.topk(x, 1)`; not the maximum of all."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _PAIRS:
        return False
    is_function = (program.names(file).qualified(node.func) or "").startswith("torch.")
    given = [*node.args[is_function:], *(one.value for one in node.keywords)]
    return bool(given) or node.func.attr in ("sort", "mode", "topk")


def _second(value: Value) -> str | None:
    """The name that a pair's places have where the pair is unpacked; None for `_`, which says that nothing reads them."""
    if value.statement is None:
        return None
    scope = scope_of(value.statement, value.file)
    names = [one.name for one in bounds_of(scope) if one.statement is value.statement and one.pick == 1]
    return names[0] if len(names) == 1 and names[0] != "_" else None
