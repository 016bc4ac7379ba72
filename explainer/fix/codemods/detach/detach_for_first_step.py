"""What one network made reaches the loss of another one detached, where backwards and steps are spread over functions.

`self.update_critic(real, fake)` and then `self.update_generator(real, fake)`, or `self.backward_D()` and `self.backward_G()` that
read `self.fake`: the critic's loss scores `fake.detach()`. Only where its optimizer owns nothing that made the value, the other
one's does, and one of the two has stepped before the second goes back.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.sequence import Lines, Named, Read, Turn, lines_of, made_by, turns_of
from explainer.source.name import dotted_name, entry_name
from explainer.source.program import Program
from explainer.source.tree import start_of, walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import sources
from explainer.source.value.provenance import provenance_of

_WHY = "sends this loss back through what made `{name}` as well, which {other} loss trains"
_NO_GRAPH = frozenset({"detach", "data", "shape", "size", "dtype", "device"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each function that runs such a step, for all that its losses share so."""
    if not context.has_failed:
        return
    program = context.program
    scopes = [*program.functions(), *((file, file.tree) for file in program.parsed() if file.tree is not None)]
    for file, scope in scopes:
        uses: dict[ast.expr, tuple[SourceFile, str]] = {}
        turns = [(one, lines_of(one, program)) for one in turns_of(scope, file, program)]
        for first, second in itertools.combinations(turns, 2):
            for one, other, which in ((first, second, "the next"), (second, first, "an earlier")):
                if _are_apart(first[0], second[0]):
                    uses |= {node: (where, which) for where, node in _uses(one, other, program)}
        if uses:
            node = min(uses, key=lambda one: (uses[one][0].path, start_of(one)))
            where, which = uses[node]
            yield Proposal(
                edits=tuple(_edits(uses)),
                culprit=culprit_of(where, node, _WHY.format(name=dotted_name(node), other=which)),
                belief=2.0,
            )


def _edits(uses: dict[ast.expr, tuple[SourceFile, str]]) -> Iterator[Edit]:
    yield from (put_method(where, one, ".detach()") for one, (where, _) in uses.items())


def _are_apart(first: Turn, second: Turn) -> bool:
    """Whether two backwards of one step stand in functions of their own, train different modules, and one has stepped between."""
    return (
        first.frame is not second.frame
        and first.stepped < second.stepped
        and first.backward.is_plain
        and second.backward.is_plain
        and bool(first.owned and second.owned)
        and not first.owned & second.owned
    )


_Loss = tuple[Turn, Lines]


def _uses(one: _Loss, other: _Loss, program: Program) -> Iterator[tuple[SourceFile, ast.expr]]:
    """Where a loss reads with its graph what the modules of another loss, and none of its own, have made."""
    (turn, lines), (owner, others) = one, other
    for named in lines.reads.keys() & others.reads.keys():
        reads = lines.reads[named]
        if not _is_of(named, reads, owner.owned, turn.owned, program):
            continue
        # As near to the backward as the other loss does not go by.
        for read in sorted(reads, key=lambda each: -each.frame.depth):
            if read.frame.file.statement(read.node) in others.statements:
                continue
            found = [node for node in walk(read.node) if _is_graph(node, read.name, read.frame.file)]
            yield from ((read.frame.file, node) for node in found if isinstance(node, ast.expr))
            if found and not any(each.frame is read.frame for each in reads if each is not read):
                break


def _is_of(named: Named, reads: list[Read], owned: frozenset[str], own: frozenset[str], program: Program) -> bool:
    """Whether a value with a graph was made by modules of one optimizer, and by none of another."""
    makers: set[str] = set()
    for file, statement, value, owner in made_by(named, reads[0].at, program):
        if not provenance_of(program).trace(Value(value, file)).live:
            return False
        for each in (value, *(part for _, part in sources(value, statement, file, program))):
            called = {entry_name(node.func) for node in walk(each) if isinstance(node, ast.Call)}
            makers |= {f"{owner}{name[4:]}" if name.startswith("self.") else name for name in called if name}
    return bool(makers & owned) and not makers & own


def _is_graph(node: ast.AST, name: str, file: SourceFile) -> bool:
    """Whether a node reads a name, and does not cut its graph."""
    if not isinstance(node, (ast.Name, ast.Attribute)) or dotted_name(node) != name:
        return False
    above = file.parents.get(node)
    return not (isinstance(above, ast.Attribute) and above.attr in _NO_GRAPH)
