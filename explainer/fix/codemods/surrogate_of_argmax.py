"""Puts a differentiable form in place of `argmax`: cross-entropy for a count of hits, softmax for one-hot decisions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.failure import backward_roots
from explainer.source.binding import Value, reaching, scope_of
from explainer.source.cut import INTEGER
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.provenance import provenance_of

_BECAUSE = "another function is optimized: counts and decisions have no gradient"
_CASTS = frozenset({"float", "double", "long", "to", "type"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each `argmax` between the parameters and the failing loss."""
    if not context.has_failed:
        return
    for root in backward_roots(context):
        trace = provenance_of(context.program).trace(root)
        for chain in trace.chains if not trace.live else ():
            cut = chain[0]
            if cut.kind != INTEGER or not isinstance(cut.node, ast.Call) or not _is_argmax(cut.node):
                continue
            scores = _scores(cut.node, context, cut.file)
            found = _one_hot(cut.node, scores, cut.file, context) or _entropy(cut.node, scores, cut.file, root, context)
            if found is not None:
                node, new = found
                where = cut.file if node in cut.file.parents else root.file
                yield Proposal(
                    edits=(edit_of(where, node, new),),
                    culprit=culprit_of(cut.file, cut.node, "has no derivative: the graph ends at this decision"),
                    belief=1.5,
                    applicability="unsafe",
                    because=_BECAUSE,
                )


def _is_argmax(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr == "argmax"


def _scores(node: ast.Call, context: Context, file: SourceFile) -> ast.expr:
    """What an `argmax` decides on."""
    assert isinstance(node.func, ast.Attribute)
    is_function = context.program.names(file).qualified(node.func) == "torch.argmax"
    return node.args[0] if is_function and node.args else node.func.value


def _functional(names: Names) -> str | None:
    """How the file spells `torch.nn.functional`."""
    for alias, target in names.imports.items():
        if target == "torch.nn.functional":
            return alias
    known = {target: alias for alias, target in names.imports.items()}
    if "torch.nn" in known:
        return f"{known['torch.nn']}.functional"
    return f"{known['torch']}.nn.functional" if "torch" in known else None


def _one_hot(node: ast.Call, scores: ast.expr, file: SourceFile, context: Context) -> tuple[ast.expr, str] | None:
    """`F.one_hot(scores.argmax(-1), n).float()` becomes `torch.softmax(scores, dim=-1)`."""
    above = file.parents.get(node)
    names = context.program.names(file)
    if not isinstance(above, ast.Call) or (names.qualified(above.func) or "") != "torch.nn.functional.one_hot":
        return None
    outer = file.parents.get(file.parents.get(above, above))
    whole: ast.expr = above
    if isinstance(outer, ast.Call) and isinstance(outer.func, ast.Attribute) and outer.func.attr in _CASTS:
        whole = outer
    torch = next((alias for alias, target in names.imports.items() if target == "torch"), None)
    if torch is None:
        return None
    return whole, f"{torch}.softmax({file.segment(scores)}, dim=-1)"


def _entropy(
    node: ast.Call, scores: ast.expr, file: SourceFile, root: Value, context: Context
) -> tuple[ast.expr, str] | None:
    """The loss that counts hits becomes the cross-entropy of the scores."""
    functional = _functional(context.program.names(root.file))
    target = _compared(node, file)
    bound = [one for one in reaching(dotted_name(root.node) or "", root.node, root.file) if not one.fills]
    if functional is None or target is None or len(bound) != 1 or file is not root.file:
        return None
    if scope_of(scores, file) is not scope_of(root.node, file):
        return None
    return bound[0].node, f"{functional}.cross_entropy({file.segment(scores)}, {file.segment(target)})"


def _compared(node: ast.Call, file: SourceFile) -> ast.expr | None:
    """What the decision is compared with, or passed beside to a criterion."""
    above: ast.AST | None = node
    below: ast.AST = node
    while above is not None and not isinstance(above, ast.stmt):
        below, above = above, file.parents.get(above)
        if isinstance(above, ast.Compare) and len(above.comparators) == 1:
            return _bare(above.comparators[0] if below is above.left else above.left)
        if isinstance(above, ast.Call) and len(above.args) == 2 and below in above.args:
            return _bare(above.args[1] if below is above.args[0] else above.args[0])
    return None


def _bare(node: ast.expr) -> ast.expr:
    """A target without its cast to float."""
    is_cast = (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("float", "double")
    )
    return node.func.value if is_cast else node  # type: ignore[attr-defined]
