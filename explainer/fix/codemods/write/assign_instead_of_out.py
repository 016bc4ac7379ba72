"""`torch.mul(a, b, out=h)` becomes `h = torch.mul(a, b)`: writing into a given tensor is not recorded by autograd."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.alias import is_aliased, is_for_others
from explainer.source.graph.write import METHOD, Write
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk

_ALIASED = "another name still means the tensor that was to be written, and would keep the old value"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the call that raised."""
    if "functions with out=" not in message_of(context):
        return
    for file, statement in raised_at(context):
        for node in walk(statement):
            keyword = _out(node)
            if isinstance(node, ast.Call) and keyword is not None:
                yield from _proposed(node, keyword, file, context.program)


def _out(node: ast.AST) -> ast.keyword | None:
    return next((one for one in node.keywords if one.arg == "out"), None) if isinstance(node, ast.Call) else None


def _proposed(node: ast.Call, keyword: ast.keyword, file: SourceFile, program: Program) -> Iterator[Proposal]:
    targets = keyword.value.elts if isinstance(keyword.value, (ast.Tuple, ast.List)) else [keyword.value]
    writes = [Write(kind=METHOD, file=file, node=node, target=one, name=dotted_name(one)) for one in targets]
    if any(one.name is None or is_for_others(one, program) for one in writes):
        return
    names = ", ".join(one.name or "" for one in writes)
    above = file.parents.get(node)
    is_bound = isinstance(above, ast.Assign) and [file.segment(one).strip("()") for one in above.targets] == [names]
    before = [
        one for one in (*node.args, *(each.value for each in node.keywords)) if file.span(one) < file.span(keyword)
    ]
    if not (isinstance(above, ast.Expr) or is_bound) or not before:
        return
    start, end = file.span(node)[0], max(file.span(one)[1] for one in before)
    assigned = () if is_bound else (Edit(file=file.path, start=start, end=start, new=f"{names} = "),)
    aliased = any(is_aliased(one, program) for one in writes)
    yield Proposal(
        edits=(*assigned, Edit(file=file.path, start=end, end=file.span(keyword.value)[1], new="")),
        culprit=culprit_of(file, node, f"writes its result into `{names}` with `out=`, which autograd does not record"),
        belief=2.5,
        applicability="unsafe" if aliased else None,
        because=_ALIASED if aliased else None,
    )
