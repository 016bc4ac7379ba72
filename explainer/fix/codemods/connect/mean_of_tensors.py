"""`torch.stack(losses).mean()` for `statistics.fmean(losses)`, and `sum(losses)` for `math.fsum(losses)`: floats have no graph.

Where the function itself is handed on, as a default or out of a table, a lambda of the same takes its place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import spell
from explainer.model.patch import Edit
from explainer.model.trace import CUT, STARVING_CUT
from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.value.flow import flow_of

_MEANS = ("statistics.fmean", "statistics.mean")
_SUM = "math.fsum"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each of these functions that is given what has a graph, or is handed on where a trace saw such a cut."""
    if not context.has_failed:
        return
    traced = [each for kind in (CUT, STARVING_CUT) for each in traced_statements(kind, context)]
    cuts = {id(one) for line, _, one in traced if line.operation == "__float__"}
    flow = flow_of(context.program)
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in _named(file, names):
            called = names.qualified(node)
            if called not in (*_MEANS, _SUM) or _is_part(node, file):
                continue
            above = file.parents.get(node)
            is_call = isinstance(above, ast.Call) and above.func is node
            given = above.args[0] if isinstance(above, ast.Call) and is_call and len(above.args) == 1 else None
            is_cut = id(file.statement(node)) in cuts
            if given is not None and (is_cut or flow.reach_of(given, file)):
                edits = tuple(_called(node, given, file, names, is_sum=called == _SUM))
            elif not is_call and cuts:
                edits = (edit_of(file, node, _function(names, is_sum=called == _SUM)),)
            else:
                continue
            why = "adds the values up as floats, which have no graph"
            yield Proposal(edits=edits, culprit=culprit_of(file, node, why), belief=2.8, is_origin=True)


def _named(file: SourceFile, names: Names) -> Iterator[ast.Name | ast.Attribute]:
    """The names and attributes of a file that may stand for one of the functions, under another name too."""
    words = {one.rpartition(".")[2] for one in (*_MEANS, _SUM)}
    local = {name for name, target in names.imports.items() if target in (*_MEANS, _SUM)}
    yield from (one for word in words for one in file.attributes.get(word, ()))
    yield from (one for word in local for one in file.plain_names.get(word, ()))


def _is_part(node: ast.expr, file: SourceFile) -> bool:
    """Whether a name is a part of a longer one, or stored."""
    return isinstance(file.parents.get(node), ast.Attribute) or not isinstance(getattr(node, "ctx", None), ast.Load)


def _called(node: ast.expr, given: ast.expr, file: SourceFile, names: Names, *, is_sum: bool) -> Iterator[Edit]:
    """The call with torch's functions; a generator is made a list."""
    call = file.parents[node]
    text = file.segment(given)
    if is_sum:
        yield edit_of(file, node, "sum")
        return
    if isinstance(given, ast.GeneratorExp):
        text = f"[{text.strip()[1:-1] if text.strip().startswith('(') else text}]"
    elif not isinstance(given, (ast.Name, ast.Attribute, ast.List, ast.ListComp, ast.Tuple)):
        text = f"list({text})"
    yield edit_of(file, call, f"{spell(names, 'torch.stack')}({text}).mean()")


def _function(names: Names, *, is_sum: bool) -> str:
    return "sum" if is_sum else f"lambda values: {spell(names, 'torch.stack')}(list(values)).mean()"
