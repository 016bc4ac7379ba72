"""A codebook hands its gradient on to what it quantises: `return z + (q - z).detach(), loss` for `return q, loss`.

The nearest entry is chosen by `argmin`, so that nothing before it trains, while the codebook and the decoder do and the loss falls.
The estimator stands in what is returned, behind the loss of the codebook itself, which needs the entries with their graph.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.trace import CUT, STARVING_CUT
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import parameters_of
from explainer.source.value.callee import callees_of
from explainer.source.value.lineage import definitions, lineage

_CHOOSES = frozenset({"argmin", "argmax", "topk", "min", "max"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each function that returns the entries which a traced line has chosen."""
    program = context.program
    for kind in (STARVING_CUT, CUT):
        for line, file, chosen in traced_statements(kind, context, guesses=True):
            if line.operation not in _CHOOSES:
                continue
            for where, function in _quantisers(chosen, file, program):
                for name, entries in _returned(function, chosen, where, program):
                    new = f"{name} + ({entries.id} - {name}).detach()"
                    is_alone = isinstance(where.parents.get(entries), (ast.Return, ast.Tuple, ast.keyword, ast.Dict))
                    yield Proposal(
                        edits=(edit_of(where, entries, new if is_alone else f"({new})"),),
                        culprit=culprit_of(
                            file, chosen, f"chooses the entries by `{line.operation}`, which has no gradient"
                        ),
                        belief=2.0,
                    )


def _quantisers(chosen: ast.stmt, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, Function]]:
    """The function in which a line chooses, and those of its file that call it."""
    own = program.names(file).function_of(chosen)
    if own is None:
        return
    yield file, own
    for where, function in program.functions():
        calls = [one for one in walk(function) if isinstance(one, ast.Call)] if where is file else []
        if function is not own and any(
            each.function is own for one in calls for each in callees_of(one.func, where, program)
        ):
            yield where, function


def _returned(
    function: Function, chosen: ast.stmt, file: SourceFile, program: Program
) -> Iterator[tuple[str, ast.Name]]:
    """What is quantised, and the entries that are returned for it; they are compared with it, detached, before."""
    returns = [one for one in walk(function) if isinstance(one, ast.Return) and one.value is not None]
    at = returns[0] if len(returns) == 1 else None
    names = [one for one in walk(at) if isinstance(one, ast.Name)] if at is not None else []
    for one in names:
        made = definitions(one.id, at, function) if at is not None else []
        if len(made) != 1 or not isinstance(made[0], ast.Assign) or one.id in parameters_of(function):
            continue
        if not _comes_of(made[0], chosen, file, program) or sum(each.id == one.id for each in names) != 1:
            continue
        compared = {name for node in walk(function) for name in _compared(node, one.id)} & set(parameters_of(function))
        # What is returned together with it has its gradient already.
        if len(compared) == 1 and not compared & {each.id for each in names}:
            yield compared.pop(), one


def _comes_of(made: ast.Assign, chosen: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether entries are looked up by an index that the traced line has chosen, here or in a helper."""
    for one in (made, *lineage(made.value, made, file, program)):
        if one is chosen:
            return True
        for call in walk(one):
            callees = callees_of(call.func, file, program) if isinstance(call, ast.Call) else ()
            if any(chosen in set(walk(each.function)) for each in callees):
                return True
    return False


def _compared(node: ast.AST, name: str) -> Iterator[str]:
    """The name with which entries are compared one by one: `F.mse_loss(q, z.detach())`, `(q - z.detach()).pow(2)`."""
    pair: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        pair = [node.left, node.right]
    elif isinstance(node, ast.Call) and (dotted_name(node.func) or "").rpartition(".")[2].endswith("_loss"):
        pair = node.args[:2]
    bare = [_bare(one) for one in pair]
    if len(pair) == 2 and name in bare:
        other = bare[1 - bare.index(name)]
        if other is not None and other != name:
            yield other


def _bare(node: ast.expr) -> str | None:
    """The name of a tensor, detached or not."""
    func = node.func if isinstance(node, ast.Call) else None
    is_detach = isinstance(func, ast.Attribute) and func.attr == "detach"
    return dotted_name(func.value) if is_detach and isinstance(func, ast.Attribute) else dotted_name(node)
