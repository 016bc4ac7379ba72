"""The old policy's log-probabilities are detached where a rollout keeps them: `self.logp.append(logp.detach())`.

`ratio = (logp - batch["logp"]).exp()` weighs the new policy against the one that acted, whose values are constants of every
update. They are found by the name under which they are kept and read, through whatever buffer, batch or sampler lies between.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.program import Program
from explainer.source.value.binding import Value, reaching
from explainer.source.value.kept import Kept, find_kept, name_read
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_SIGNS = ("modified by an inplace operation", "a second time")
_WHY = "keeps the old policy's log-probabilities with their graph, which the first of several updates frees"
_PAST = re.compile(r"(?:^|_)(?:old|prev|previous|behaviou?r|sampled?|rollout|stored)(?:_|$)", re.IGNORECASE)
_CUT = ("detach", "item", "tolist", "numpy", "data")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the one place that keeps what a ratio of probabilities takes as the old ones."""
    if not any(sign in one.message for one in context.incident.exceptions for sign in _SIGNS):
        return
    program = context.program
    names = {name for file in program.parsed() for node in file.walk() for name in _old(node, file, program)}
    kept = [one for one in find_kept(names, program) if _has_graph(one.value, one.file, program)]
    # What is appended step by step is where a value is kept; an entry of the same name may only hand on what is kept.
    grown = [one for one in kept if one.is_appended] or [one for one in kept if isinstance(one.value, ast.Name)] or kept
    if len(grown) == 1:
        (one,) = grown
        edit = put_method(one.file, one.value, ".detach()")
        culprit = culprit_of(one.file, _made(one), _WHY)
        # A ratio says what is meant: computed in each round, as others may be, it would always be one.
        yield Proposal(edits=(edit,), culprit=culprit, belief=3.4, is_origin=True)


def _made(kept: Kept) -> ast.expr | ast.stmt:
    """What is kept, or, where it was computed in the same function, the statement that did."""
    found = reaching(kept.value.id, kept.value, kept.file) if isinstance(kept.value, ast.Name) else []
    is_computed = len(found) == 1 and isinstance(found[0].statement, ast.Assign) and not found[0].is_element
    return kept.file.statement(found[0].statement) if is_computed else kept.value


def _old(node: ast.AST, file: SourceFile, program: Program) -> Iterator[str]:
    """The name or key of `old` in `exp(new - old)`, where it is read of a batch or a buffer."""
    if not isinstance(node, ast.Call):
        return
    inner = None
    if program.names(file).is_call(node, "torch.exp") and node.args:
        inner = node.args[0]
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "exp":
        inner = node.func.value
    for one in (inner, *(each.node for each in _behind(inner, file, program))):
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub):
            name = name_read(one.right)
            # A plain name may be the new ones', as in the KL divergence from a reference.
            if name is not None and (not isinstance(one.right, ast.Name) or _PAST.search(name)):
                yield name


def _behind(node: ast.expr | None, file: SourceFile, program: Program) -> Iterator[Value]:
    if isinstance(node, ast.Name):
        yield from resolver_of(program).behind(Value(node, file))


def _has_graph(value: ast.expr, file: SourceFile, program: Program) -> bool:
    is_cut = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _CUT
    if is_cut or is_without_grad(value, file, program):
        return False
    return bool(provenance_of(program).trace(Value(value, file)).live)
