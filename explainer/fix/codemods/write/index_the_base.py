"""`for image, padded in zip(images, batch): padded[...].copy_(image)` writes `batch[index, ...]` instead.

Iterating over a tensor unbinds it, and what comes out may not be written where grad mode is on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.lineage import changes, loops_of, scope_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the loop whose element the failing line writes."""
    if not context.has_failed:
        return
    for file, statement in crash_places(context):
        for loop in loops_of(statement, file):
            scope = scope_of(loop, file, context.program)
            taken = {node.id for node in walk(scope) if isinstance(node, ast.Name)} if scope is not None else set()
            found = _rewritten(loop, statement, file, "index" if "index" not in taken else "position")
            if isinstance(loop, ast.For) and found:
                yield Proposal(
                    edits=found,
                    culprit=culprit_of(
                        file, statement, "writes what iterating over a tensor handed out, one of many views"
                    ),
                    belief=2.0,
                )
        return


def _rewritten(loop: ast.For | ast.While, statement: ast.stmt, file: SourceFile, index: str) -> tuple[Edit, ...]:
    written = changes(statement)
    if not isinstance(loop, ast.For) or loop.orelse:
        return ()
    if isinstance(loop.target, ast.Name) and loop.target.id in written and dotted_name(loop.iter):
        base = file.segment(loop.iter)
        head = (edit_of(file, loop.target, index), edit_of(file, loop.iter, f"range(len({base}))"))
        return (*head, *_uses(loop, loop.target.id, base, index, file))
    if (
        not isinstance(loop.target, ast.Tuple)
        or not isinstance(loop.iter, ast.Call)
        or dotted_name(loop.iter.func) != "zip"
    ):
        return ()
    pairs = list(zip(loop.target.elts, loop.iter.args, strict=False))
    chosen = [(one, given) for one, given in pairs if dotted_name(one) in written and dotted_name(given)]
    others = [(one, given) for one, given in pairs if (one, given) not in chosen]
    if len(chosen) != 1 or not others:
        return ()
    name, base = dotted_name(chosen[0][0]) or "", file.segment(chosen[0][1])
    names, sources = ([file.segment(one[at]) for one in others] for at in (0, 1))
    target = f"{index}, {names[0]}" if len(names) == 1 else f"{index}, ({', '.join(names)})"
    source = sources[0] if len(sources) == 1 else f"zip({', '.join(sources)})"
    head = (edit_of(file, loop.target, target), edit_of(file, loop.iter, f"enumerate({source})"))
    return (*head, *_uses(loop, name, base, index, file))


def _uses(loop: ast.For, name: str, base: str, index: str, file: SourceFile) -> Iterator[Edit]:
    """`row[a]` as `base[index, a]`, `row` as `base[index]`."""
    for node in (each for one in loop.body for each in walk(one)):
        if not isinstance(node, ast.Name) or node.id != name:
            continue
        above = file.parents.get(node)
        end = file.span(node)[1]
        if isinstance(above, ast.Subscript) and above.value is node:
            inner = file.span(above.slice)[0]
            yield Edit(file=file.path, start=file.span(node)[0], end=inner, new=f"{base}[{index}, ")
        else:
            yield Edit(file=file.path, start=file.span(node)[0], end=end, new=f"{base}[{index}]")
