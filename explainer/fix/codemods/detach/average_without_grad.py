"""The slow copy of a network runs without grad: `with torch.no_grad(): k = self.key(x)` of a momentum encoder or target network.

Its weights follow another network's, as an average or a copy, and no loss trains them. A graph through it keeps weights
that the next average overwrites.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method, under_no_grad
from explainer.model.patch import Edit
from explainer.model.trace import HIDDEN_WRITE, WRITE
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.name import dotted_name
from explainer.source.network.follower import followers
from explainer.source.network.module import is_module
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.provenance import provenance_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the calls of each network whose weights a trace saw following another's."""
    program = context.program
    seen: set[tuple[str, str]] = set()
    for kind in (WRITE, HIDDEN_WRITE):
        for file, statement in traced_places(kind, context):
            for where, slow in followers(statement, file, program):
                if (where.path, slow) in seen:
                    continue
                seen.add((where.path, slow))
                yield from _calls_without_grad(slow, where, _owner(slow, statement, file, where, program), context)


def _owner(slow: str, at: ast.stmt, file: SourceFile, where: SourceFile, program: Program) -> ast.ClassDef | None:
    """The class whose own network is meant, `self.body`: another class of the file may call one of its own so."""
    return program.names(file).class_of(at) if slow.startswith("self.") and file is where else None


def _calls_without_grad(
    slow: str, file: SourceFile, owner: ast.ClassDef | None, context: Context
) -> Iterator[Proposal]:
    """One edit for all statements of a file that run a network with grad mode on; none where gradients are to go through it."""
    program = context.program
    runs = [
        node
        for node in (file.walk() if owner is None else walk(owner))
        if isinstance(node, ast.Call) and dotted_name(node.func) == slow and not is_without_grad(node, file, program)
    ]
    provenance = provenance_of(program)
    given = [one for run in runs for one in (*run.args, *(each.value for each in run.keywords))]
    if any(provenance.trace(Value(one, file)).live for one in given) or _is_optimized(slow, program):
        return
    if any(_feeds_another(run, file, program) for run in runs):
        return  # a head that both share would train through the copy's side
    edits: dict[Edit, None] = {}
    for run in runs:
        statement = file.statement(run)
        if _runs_nothing_else(statement, slow, file, program):
            edits |= dict.fromkeys(under_no_grad(file, [statement], program.names(file)))
        else:
            edits[put_method(file, run, ".detach()")] = None
    if edits:
        why = f"runs `{slow}`, whose weights follow another network's, with a graph"
        yield Proposal(edits=tuple(edits), culprit=culprit_of(file, file.statement(runs[0]), why), belief=4.5)


def _feeds_another(run: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether another module takes what the copy gives: `self.head(self.slow(x))`."""
    inner: ast.AST = run
    above = file.parents.get(run)
    while above is not None and not isinstance(above, ast.stmt):
        if isinstance(above, ast.Call) and inner in above.args and is_module(Value(above.func, file), program):
            return True
        inner, above = above, file.parents.get(above)
    return False


def _is_optimized(slow: str, program: Program) -> bool:
    """Whether an optimizer is given that network's parameters by its name: then it trains, and is synchronised besides."""
    last = slow.rpartition(".")[2]
    for file in program.parsed():
        for call in file.walk():
            if not isinstance(call, ast.Call):
                continue
            if not (program.names(file).qualified(call.func) or "").startswith("torch.optim."):
                continue
            listed = [one.value for one in walk(call) if isinstance(one, ast.Attribute) and one.attr == "parameters"]
            if any((dotted_name(one) or "").rpartition(".")[2] == last for one in listed):
                return True
    return False


def _runs_nothing_else(statement: ast.stmt, slow: str, file: SourceFile, program: Program) -> bool:
    """Whether an assignment calls that network and functions of torch alone: no other network, whose graph would be lost."""
    if not isinstance(statement, ast.Assign):
        return False
    names = program.names(file)
    called = [node.func for node in walk(statement) if isinstance(node, ast.Call)]
    return all(dotted_name(one) == slow or (names.qualified(one) or "").startswith("torch.") for one in called)
