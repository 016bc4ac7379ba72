"""`q, k, v = (part.clone() for part in x.unbind(0))` where a helper writes into one of them, which it only does by its side effect.

Autograd lets none of the views be written that one call has made. Only where the tensor under them is read no more: it would not see
what is written. A copy at the top of the helper would run as well, and lose what the helper is there for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import free_name
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.tree import walk
from explainer.source.value.lineage import before, scope_of

_SPLITS = frozenset({"unbind", "chunk", "split", "tensor_split", "hsplit", "vsplit", "dsplit", "split_with_sizes"})
_REFUSED = "is the output of a function that returns multiple views"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the one statement that takes views apart in the function which calls the helper."""
    if not context.has_failed or _REFUSED not in message_of(context):
        return
    callers = failing_statements(context)[1:]  # of a write in the function itself others know more
    for file, statement in callers:
        scope = scope_of(statement, file, context.program)
        if scope is None:
            continue
        found = [
            one for one in walk(scope) if isinstance(one, ast.Assign) and before(one, statement) and _is_split(one)
        ]
        if len(found) != 1:
            continue
        (one,) = found
        if _is_read(one.value, one, scope, file, context.program.names(file)):
            return
        name = free_name("part", scope)
        yield Proposal(
            edits=(edit_of(file, one.value, f"({name}.clone() for {name} in {file.segment(one.value)})"),),
            culprit=culprit_of(file, one, "makes views in one call, of which none may be written"),
            belief=1.2,
        )
        return


def _is_split(statement: ast.Assign) -> bool:
    call, target = statement.value, statement.targets[0]
    is_call = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _SPLITS
    return is_call and len(statement.targets) == 1 and isinstance(target, (ast.Tuple, ast.List))


def _is_read(split: ast.expr, statement: ast.Assign, scope: ast.AST, file: SourceFile, names: Names) -> bool:
    """Whether what is taken apart is read behind it: it would miss what is written into the copies."""
    name = dotted_name(_base(split, names)) or ""
    return bool(name) and any(
        isinstance(one, (ast.Name, ast.Attribute))
        and dotted_name(one) == name
        and file.span(one)[0] > file.span(statement)[1]
        for one in walk(scope)
    )


def _base(node: ast.expr, names: Names) -> ast.expr:
    """What a chain of methods, or functions of torch, begins with; the call of a module, whose result has no other name."""
    if isinstance(node, (ast.Subscript, ast.Starred)):
        return _base(node.value, names)
    if not isinstance(node, ast.Call):
        return node
    if (names.qualified(node.func) or "").startswith("torch."):
        return _base(node.args[0], names) if node.args else node
    is_method = isinstance(node.func, ast.Attribute) and dotted_name(node.func.value) != "self"
    return _base(node.func.value, names) if is_method and isinstance(node.func, ast.Attribute) else node
