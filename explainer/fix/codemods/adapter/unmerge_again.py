"""`model.merge_adapter()` of a function that gives the model back to training is followed by `model.unmerge_adapter()` at its end."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, insert_before
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.lineage import block_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each function, or block of a script, that merges an adapter and leaves it so."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        for attribute in file.attributes.get("merge_adapter", ()):
            call, owner = file.parents.get(attribute), dotted_name(attribute.value)
            statement = file.statement(attribute)
            if not isinstance(call, ast.Call) or owner is None or not isinstance(statement, ast.Expr):
                continue
            around = context.program.names(file).function_of(attribute) or file.tree
            inside = set(walk(around)) if around is not None else set()
            taken_out = [one for one in file.attributes.get("unmerge_adapter", ()) if one in inside]
            if any(dotted_name(one.value) == owner for one in taken_out):
                continue
            last = block_of(statement, file)[-1]
            text = f"{owner}.unmerge_adapter()"
            edit = insert_before(file, last, text) if isinstance(last, ast.Return) else insert_after(file, last, text)
            yield Proposal(
                edits=(edit,),
                culprit=culprit_of(file, call, f"merges the adapter of `{owner}`, and nothing takes it out again"),
                belief=2.5,
            )
